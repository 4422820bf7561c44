#include "backends/cuda/wgmma/tensor_map.h"

#include <string.h>

#include "backends/cuda/driver/context.h"
#include "base/error.h"

_Static_assert(sizeof(hn_map_words) == sizeof(CUtensorMap), "a tensor map is 128 bytes");

static CUtensorMapDataType type_of(hone_dtype t) {
  return t == HONE_DTYPE_F16    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
         : t == HONE_DTYPE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
         : t == HONE_DTYPE_F32  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                : CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

static uint32_t size_of(hone_dtype t) { return (uint32_t)hone_dtype_size(t); }

static CUtensorMapSwizzle swizzle_of(uint32_t bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                       : CU_TENSOR_MAP_SWIZZLE_32B;
}

/* A tensor as the driver wants it told, but for what all have in common. */
typedef struct boxes {
  uint32_t rank;
  cuuint64_t dim[4], stride[3]; /* of the inner dimension first; bytes */
  cuuint32_t box[4];
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion fetch;
} boxes;

static hone_status encode(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                          const boxes *b, hone_error *error) {
  hn_device *d = hn_cuda_device(q);
  if (hn_cuda_dry(q)) return HONE_OK;
  if (!d->cu.cuTensorMapEncodeTiled)
    return hn_fail(error, HONE_ERROR_MISSING, "the driver knows no tensor maps");
  const cuuint32_t step[4] = {1, 1, 1, 1};
  CUtensorMap it;
  hone_status st = HN_CU(d, error, cuTensorMapEncodeTiled, &it, type_of(type), b->rank, (void *)(uintptr_t)at,
                         b->dim, b->stride, b->box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, b->swizzle, b->fetch,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  memcpy(map, &it, sizeof it);
  return st;
}

static hone_status map_boxes(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                             uint64_t columns, uint64_t rows, int64_t pitch, uint32_t box_columns,
                             uint32_t box_rows, CUtensorMapL2promotion fetch, hone_error *error) {
  const boxes b = {.rank = 2,
                   .dim = {columns, rows},
                   .stride = {(cuuint64_t)pitch * size_of(type)},
                   .box = {box_columns, box_rows},
                   .swizzle = swizzle_of(box_columns * size_of(type)),
                   .fetch = fetch};
  return encode(q, map, type, at, &b, error);
}

hone_status hn_cuda_map_matrix(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                               uint64_t columns, uint64_t rows, int64_t pitch, uint32_t box_columns,
                               uint32_t box_rows, hone_error *error) {
  return map_boxes(q, map, type, at, columns, rows, pitch, box_columns, box_rows,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B, error);
}

hone_status hn_cuda_map_rows(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                             uint64_t columns, uint64_t rows, int64_t pitch, uint32_t box_columns,
                             uint32_t box_rows, hone_error *error) {
  return map_boxes(q, map, type, at, columns, rows, pitch, box_columns, box_rows,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, error);
}

hone_status hn_cuda_map_im2col(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                               const hn_cuda_im2col *c, hone_error *error) {
  hn_device *d = hn_cuda_device(q);
  if (hn_cuda_dry(q)) return HONE_OK;
  if (!d->cu.cuTensorMapEncodeIm2col)
    return hn_fail(error, HONE_ERROR_MISSING, "the driver knows no tensor maps");
  const cuuint64_t dim[4] = {c->channels, c->w, c->h, c->n};
  const cuuint64_t pixel = (cuuint64_t)c->pixel * size_of(type);
  const cuuint64_t stride[3] = {pixel, pixel * c->w, (cuuint64_t)c->image * size_of(type)};
  const cuuint32_t step[4] = {1, (cuuint32_t)c->stride[0], (cuuint32_t)c->stride[1], 1};
  const int lower[2] = {(int)c->first[0], (int)c->first[1]};
  const int upper[2] = {(int)(c->last[0] - c->w + 1), (int)(c->last[1] - c->h + 1)};
  CUtensorMap it;
  hone_status st = HN_CU(d, error, cuTensorMapEncodeIm2col, &it, type_of(type), 4, (void *)(uintptr_t)at, dim,
                         stride, lower, upper, c->unit, c->rows, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         swizzle_of(c->unit * size_of(type)), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  memcpy(map, &it, sizeof it);
  return st;
}

hone_status hn_cuda_map_image(hn_cuda_queue *q, hn_map_words *map, hone_dtype type, const void *at,
                              const hn_cuda_image *i, bool swizzled, hone_error *error) {
  const cuuint64_t size = size_of(type);
  const boxes b = {
      .rank = 4,
      .dim = {i->channels, i->w, i->h, i->n},
      .stride = {(cuuint64_t)i->pixel * size, (cuuint64_t)i->row * size, (cuuint64_t)i->image * size},
      .box = {i->box[0], i->box[1], i->box[2], i->box[3]},
      .swizzle = swizzled ? swizzle_of(i->box[0] * size_of(type)) : CU_TENSOR_MAP_SWIZZLE_NONE,
      .fetch = CU_TENSOR_MAP_L2_PROMOTION_L2_128B};
  return encode(q, map, type, at, &b, error);
}
