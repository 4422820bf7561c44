#include "backends/cuda/normalize/softmax.h"

/* Before opset 13 the dimensions from the axis on are one row. */
bool hn_cuda_softmax(const hone_step *s, hn_row_kind kind, hn_rows *rows, hone_reason *why) {
  const bool flat = s->node && hone_node_opset(s->node) < 13;
  uint32_t axes;
  if (s->input[0].desc.rank < 1) return hn_refuse(why, "a scalar");
  if (!hn_rows_axis(s, flat ? 1 : -1, flat, &axes, why)) return false;
  *rows = hn_rows_make(kind, axes);
  return true;
}
