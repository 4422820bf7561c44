/* Batches of matrix products: C[i] = alpha * A[i] x B[i] with the batch dimensions broadcast as MatMul does.
 * A constant B that all batches share is packed at plan time and the batches of a dense A become rows of one
 * product; any other B is packed on the fly, block by block, into the running thread's workspace. */
#ifndef HN_CPU_PRODUCT_MATMUL_DRIVER_H
#define HN_CPU_PRODUCT_MATMUL_DRIVER_H

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/step/step.h"

typedef struct hn_matmul {
  hn_isa isa;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col; /* distances in A (m x k) and B (k x n), in floats */
  int32_t n_batch_dims;
  int64_t batch[HONE_MAX_RANK], a_batch[HONE_MAX_RANK], b_batch[HONE_MAX_RANK]; /* sizes and distances */
  int64_t batches;
  float alpha;
  int64_t packed;   /* B is in the blob */
  hn_conv conv;     /* one product */
  int64_t n_blocks; /* of B, when packed on the fly */
  int64_t block;    /* columns of a block */
  int64_t thread_floats;
} hn_matmul;

/* Fills what follows from the problem (isa ... alpha, packed are set by the caller). */
void hn_matmul_plan(hn_matmul *p, uint32_t threads, size_t l1, size_t l2);

/* Floats of the packed B and of the whole workspace. */
size_t hn_matmul_packed(const hn_matmul *p);
size_t hn_matmul_workspace(const hn_matmul *p, uint32_t threads);

/* Packs a constant B, times alpha. */
void hn_matmul_pack(const hn_matmul *p, const float *b, float *dst);

/* b: packed B when p->packed, else B as it lies. */
void hn_matmul_exec(const hn_matmul *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                    float *workspace, hn_parallel_fn parallel, void *pool);

#endif
