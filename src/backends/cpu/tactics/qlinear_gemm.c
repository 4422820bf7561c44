/* Quantised Gemm with constant right operand and bias, exact: see qlinear_step.h. */
#include "backends/cpu/common/qlinear_step.h"

extern const struct hone_tactic_desc hn_tactic_gemm_bf16, hn_tactic_gemm_tiles;

static int64_t per_channel(const hone_step *s) {
  const hone_tensor_desc *w = &s->input[HN_QLINEAR_W].desc;
  if (w->rank != 2 || hone_node_float(s->node, "alpha", 1) != 1 || hone_node_float(s->node, "beta", 1) != 1)
    return 0;
  return hone_node_int(s->node, "transB", 0) ? w->dim[1] : 1;
}

static const struct hone_tactic_desc *const inner[] = {&hn_tactic_gemm_bf16, &hn_tactic_gemm_tiles, NULL};
static const hn_qlinear kind = {"Gemm", inner, per_channel};

HN_QLINEAR_TACTIC(qlinear_gemm, "QLinearGemm", kind);
