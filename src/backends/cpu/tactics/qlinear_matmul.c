/* Quantised MatMul with constant right operand, exact: see qlinear_step.h. */
#include "backends/cpu/common/qlinear_step.h"

extern const struct hone_tactic_desc hn_tactic_matmul_bf16, hn_tactic_matmul_tiles;

/* The columns of the matrix are the output's channels. */
static int64_t per_channel(const hone_step *s) {
  return s->input[HN_QLINEAR_W].desc.rank >= 2 && s->input[HN_QLINEAR_X].desc.rank >= 2;
}

static const struct hone_tactic_desc *const inner[] = {&hn_tactic_matmul_bf16, &hn_tactic_matmul_tiles, NULL};
static const hn_qlinear kind = {"MatMul", inner, per_channel};

HN_QLINEAR_TACTIC(qlinear_matmul, "QLinearMatMul", kind);
