/* The quantised products: what they are without codes, and which channel a weight belongs to. */
#include "backends/cpu/quantized/qlinear_step.h"

extern const hone_tactic_desc hn_cpu_tactic_conv_bf16, hn_cpu_tactic_conv_gemm, hn_cpu_tactic_depthwise_rows,
    hn_cpu_tactic_gemm_bf16, hn_cpu_tactic_gemm_tiles, hn_cpu_tactic_matmul_bf16, hn_cpu_tactic_matmul_tiles;

static int64_t of_conv(const hone_step *s) {
  const hone_tensor_desc *w = &s->input[HN_QLINEAR_W].desc;
  return w->rank >= 3 && w->dim[0] > 0 && s->output[0].desc.rank == w->rank ? hone_desc_count(w) / w->dim[0]
                                                                            : 0;
}

static int64_t of_gemm(const hone_step *s) {
  const hone_tensor_desc *w = &s->input[HN_QLINEAR_W].desc;
  if (w->rank != 2 || hone_node_float(s->node, "alpha", 1) != 1 || hone_node_float(s->node, "beta", 1) != 1)
    return 0;
  return hone_node_int(s->node, "transB", 0) ? w->dim[1] : 1;
}

/* The columns of the matrix are the output's channels. */
static int64_t of_matmul(const hone_step *s) {
  return s->input[HN_QLINEAR_W].desc.rank >= 2 && s->input[HN_QLINEAR_X].desc.rank >= 2;
}

static const struct hone_tactic_desc *const convs[] = {&hn_cpu_tactic_conv_bf16, &hn_cpu_tactic_conv_gemm,
                                                       &hn_cpu_tactic_depthwise_rows, NULL};
static const struct hone_tactic_desc *const gemms[] = {&hn_cpu_tactic_gemm_bf16, &hn_cpu_tactic_gemm_tiles,
                                                       NULL};
static const struct hone_tactic_desc *const matmuls[] = {&hn_cpu_tactic_matmul_bf16,
                                                         &hn_cpu_tactic_matmul_tiles, NULL};

const hn_qlinear hn_qlinear_conv = {"Conv", convs, of_conv};
const hn_qlinear hn_qlinear_gemm = {"Gemm", gemms, of_gemm};
const hn_qlinear hn_qlinear_matmul = {"MatMul", matmuls, of_matmul};
