/* Descriptions of tensors for Hopper's copy engine. On a dry queue nothing is described. */
#ifndef HN_CUDA_PRODUCT_TENSOR_MAP_H
#define HN_CUDA_PRODUCT_TENSOR_MAP_H

#include "backends/cuda/device/conv_wgmma_args.h"
#include "backends/cuda/driver/cuda.h"

/* A matrix of f16, bf16 or codes of 8 bits: `columns` contiguous ones, `rows` rows `pitch` elements apart;
 * boxes of box_columns x box_rows, whose rows of up to 128 bytes are swizzled over their length. */
hone_status hn_cuda_map_matrix(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                               uint64_t columns, uint64_t rows, int64_t pitch, uint32_t box_columns,
                               uint32_t box_rows, hone_error *error);
/* The same for boxes of whole lines that are read side by side: the second-level cache fetches 256 bytes at a
 * time. */
hone_status hn_cuda_map_rows(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                             uint64_t columns, uint64_t rows, int64_t pitch, uint32_t box_columns,
                             uint32_t box_rows, hone_error *error);

/* Columns of pixels of an image: base pixels run from `first` to `last` (x, y) by `stride`, image after
 * image. */
typedef struct hn_cuda_im2col {
  uint32_t channels, w, h, n;
  int64_t pixel, image; /* distances in elements */
  int64_t first[2], last[2];
  int32_t stride[2];
  uint32_t unit, rows; /* channels and base pixels of a copy */
} hn_cuda_im2col;
hone_status hn_cuda_map_im2col(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                               const hn_cuda_im2col *c, hone_error *error);

/* Boxes of images, channels-last. What of a box lies outside comes as zeros, and is not written. */
typedef struct hn_cuda_image {
  uint32_t channels, w, h, n;
  int64_t pixel, row, image; /* distances in elements */
  uint32_t box[4];           /* channels, w, h, n */
} hn_cuda_image;
hone_status hn_cuda_map_image(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                              const hn_cuda_image *image, bool swizzled, hone_error *error);

#endif
