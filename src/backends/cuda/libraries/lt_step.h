/* Steps that are matrix products (MatMul, Gemm, Conv of 1x1 at stride 1) as one product of cuBLASLt, and the
 * tactics made of it. */
#ifndef HN_CUDA_LIBRARIES_LT_STEP_H
#define HN_CUDA_LIBRARIES_LT_STEP_H

#include "backends/cuda/libraries/lt_matmul.h"
#include "backends/tactic.h"

/* Where an operand lies when the step runs. */
typedef struct hn_lt_source {
  bool there, in_blob;
  uint32_t input; /* the step's input that it is, or is packed from */
  size_t at;      /* in the blob */
} hn_lt_source;

typedef struct hn_lt_step {
  hn_lt_spec spec;
  hn_lt_source a, b, c, bias;
  size_t blob_bytes;
  uint32_t packed;
  /* How constants are packed: B as n rows of k (rows beyond `columns`, and elements beyond `depth`, are
   * zeros), from where its element (k, n) is k * b_k + n * b_n; the bias times bias_scale. */
  int64_t columns, depth, b_k, b_n;
  float bias_scale;
} hn_lt_step;

/* False with the reason. They ask nothing of cuBLASLt. */
typedef bool hn_lt_describe(const hone_step *s, hn_lt_step *out, hone_reason *why);
hn_lt_describe hn_lt_matmul_of, hn_lt_gemm_of, hn_lt_conv_of;
/* MatMul or Gemm without the step's epilogue. */
hn_lt_describe hn_lt_product_of;
/* B alone, in zeros; the whole blob. */
void hn_lt_pack_weights(const hone_step *s, const hn_lt_step *l, void *to);
void hn_lt_pack(const hone_step *s, const hn_lt_step *l, void *blob);

typedef struct hn_lt_config {
  hn_lt_describe *describe; /* the kind of step */
  uint32_t candidate;       /* which of the heuristics' algorithms */
} hn_lt_config;

HN_FAMILY_COUNTED(hn_lt);
HN_FAMILY_SHARED(hn_lt);

#define hn_cuda_lt_tactic(NAME, ANCHOR, ...)                                                                 \
  HN_TACTIC_COUNTED_SHARED(cuda, NAME, ANCHOR, 1, hn_lt, __VA_ARGS__)

#endif
