/* Steps as the warpgroup products see them: an implicit GEMM whose A the copy engine brings (or threads
 * gather), and weights in blocks of 128 bytes of K. */
#ifndef HN_CUDA_PRODUCT_WGMMA_PROBLEM_H
#define HN_CUDA_PRODUCT_WGMMA_PROBLEM_H

#include "backends/cuda/device/conv_wgmma_args.h"
#include "backends/cuda/product/product.h"

enum { HN_WGMMA_BLOCK_BYTES = 128 }; /* of K */

typedef enum hn_wgmma_a {
  HN_WGMMA_MATRIX,
  HN_WGMMA_IM2COL,
  HN_WGMMA_GATHER
} hn_wgmma_a; /* as in wgmma.cuh */

typedef struct hn_wgmma_problem {
  hn_product p;
  hn_wgmma_a mode;
  uint32_t unit;          /* channels of a copy of A */
  uint32_t taps, units;   /* units: of a tap */
  uint32_t k_blocks, n16; /* n16: columns of the packed weights, in whole 16s */
  uint32_t columns;       /* of the output, channel padding included */
  int64_t tiles;
  uint32_t splits;  /* blocks of a cluster */
  uint32_t vectors; /* of the epilogue, which lie in shared memory */
  double functions; /* instructions of the epilogue's functions for a value */
  bool staged;      /* a tensor of the epilogue comes through shared memory */
  bool added;       /* one is read ahead as the sums leave */
  double unread;    /* hn_wgmma_unread */
  bool outside;     /* what lies outside of an image is not zero... */
  bool mended;      /* ... and what zeros lack there can be added at the end */
  bool table;       /* of codes: they are what a function makes of the product's */
  bool pairs;       /* of codes: neighbouring columns are a thread's two rows (device/turned_codes.cuh) */
  uint32_t parts;   /* of f32: parts of tf32 that weights are stored in, 1 or 2; else 0 */
} hn_wgmma_problem;

/* Conv, Gemm or MatMul of one product on arch 90; tiles and splits are the caller's to set. */
bool hn_wgmma_read(const hone_step *s, const hone_machine *m, hn_wgmma_problem *q, hone_reason *why);
/* The same where q->p, q->outside and q->mended are there already. */
bool hn_wgmma_fits(hn_wgmma_problem *q, hone_reason *why);

/* Bytes of the input between the taps of a stride: nobody reads them. */
double hn_wgmma_unread(const hone_step *s, const hn_wgmma_problem *q);

/* All weights of the step, into a blob of zeros: [block of K][n8] tiles of 8 columns x 128 bytes of K, as the
 * copy engine would have swizzled them. */
void hn_wgmma_pack(const hone_step *s, const hn_wgmma_problem *q, uint32_t n8, void *blob);
/* hone_tactic_desc.shared of a blob that is what this makes, or hn_wgmma_pack_parts, of q->n16 columns. */
size_t hn_wgmma_shared_weights(const hn_wgmma_problem *q, uint64_t *key);
/* Those of f32, each block of K as its tiles for each of q->parts. */
void hn_wgmma_pack_parts(const hone_step *s, const hn_wgmma_problem *q, uint32_t n8, void *blob);
/* Those of a 1x1 in pieces of `columns` columns, each [blocks][columns / 8] tiles. */
void hn_wgmma_pack_pieces(const hone_step *s, const hn_wgmma_problem *q, uint32_t columns, uint32_t blocks,
                          void *blob);

/* Those of a 1x1 in blocks of so many channels, each [columns / 8] tiles whose rest of 128 bytes is not
 * touched. */
void hn_wgmma_pack_channels(const hone_step *s, const hn_wgmma_problem *q, uint32_t columns,
                            uint32_t channels, void *blob);

/* The map of A (not of gathered A), in boxes of `rows`. */
hone_status hn_wgmma_map_a(hn_cuda_queue *queue, const hn_wgmma_problem *q, const void *x, uint32_t rows,
                           hn_map_words *map, hone_error *error);
/* What follows from the problem alone; weights, y and the epilogue are the caller's. */
void hn_wgmma_args(const hn_wgmma_problem *q, const void *x, hn_conv_wgmma_args *a);

#endif
