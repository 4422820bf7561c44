/* One product of cuBLASLt: D = act(alpha op(A) op(B) + beta C + bias), all matrices row-major, batches at
 * fixed distances; or D = A op(B) of i8 in i32. Numbers of 8 bits are times a scale for each operand. The
 * description is plain data, so that what is asked of cuBLASLt can be tested without it.
 */
#ifndef HN_CUDA_LIBRARIES_LT_MATMUL_H
#define HN_CUDA_LIBRARIES_LT_MATMUL_H

#include <hone/plugin.h>

enum { HN_LT_CANDIDATES = 4, HN_LT_KEY = 512 };

typedef enum hn_lt_act { HN_LT_PLAIN, HN_LT_RELU, HN_LT_GELU_TANH } hn_lt_act;

typedef struct hn_lt_matrix {
  int64_t row;   /* elements from one row to the next, as stored */
  int64_t batch; /* from one matrix to the next; 0: the same for all */
  bool turned;   /* stored transposed */
} hn_lt_matrix;

typedef struct hn_lt_spec {
  hone_dtype dtype; /* of A, B, C, D and the bias: f32, f16 or bf16; i8: of A and B, and D is i32 */
  hone_dtype out;   /* of C, D and the bias where A and B are f8e4m3fn; else NONE */
  hone_math math;
  int64_t m, n, k, batches;
  hn_lt_matrix a, b, c, d; /* A m x k, B k x n, C and D m x n (never turned) */
  float alpha, beta;       /* beta 0: no C */
  bool bias;               /* n values, one a column */
  hn_lt_act act;
  size_t workspace;
} hn_lt_spec;

/* All that the choice of an algorithm depends on, in one line. Returns buf. */
char *hn_lt_key(const hn_lt_spec *spec, char *buf, size_t size);

/* ---------------------------------------------------------------- where cuBLASLt is */

typedef struct hn_lt_plan hn_lt_plan;

/* Asks the heuristics for algorithms that add in f32, or in i32 (operands of i8: alpha is 1, beta 0). handle:
 * cublasLtHandle_t. */
hone_status hn_lt_plan_open(const hn_lt_spec *spec, void *handle, hn_lt_plan **out, hone_error *error);
void hn_lt_plan_close(void *plan);
uint32_t hn_lt_plan_candidates(const hn_lt_plan *plan);
/* Device addresses. */
typedef struct hn_lt_place {
  const void *a, *b, *c, *bias;
  const void *a_scale, *b_scale; /* of f8e4m3fn: an f32 each */
  void *d, *workspace;
} hn_lt_place;

/* Puts the product on a stream (cudaStream_t). */
hone_status hn_lt_plan_run(const hn_lt_plan *plan, uint32_t candidate, void *handle, const hn_lt_place *at,
                           void *stream, hone_error *error);

#endif
