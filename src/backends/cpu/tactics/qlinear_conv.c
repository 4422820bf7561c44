/* Quantised Conv with constant weights, exact: see qlinear_step.h. */
#include "backends/cpu/common/qlinear_step.h"

extern const struct hone_tactic_desc hn_tactic_conv_bf16, hn_tactic_conv_gemm, hn_tactic_depthwise_rows;

static int64_t per_channel(const hone_step *s) {
  const hone_tensor_desc *w = &s->input[HN_QLINEAR_W].desc;
  return w->rank >= 3 && w->dim[0] > 0 && s->output[0].desc.rank == w->rank ? hone_desc_count(w) / w->dim[0]
                                                                            : 0;
}

static const struct hone_tactic_desc *const inner[] = {&hn_tactic_conv_bf16, &hn_tactic_conv_gemm,
                                                       &hn_tactic_depthwise_rows, NULL};
static const hn_qlinear kind = {"Conv", inner, per_channel};

HN_QLINEAR_TACTIC(qlinear_conv, "QLinearConv", kind);
