#include "optimize/step/axes.h"

#include "base/error.h"

bool hn_step_axes(const hone_step *step, uint32_t *axes, hone_reason *why) {
  const int32_t rank = step->input[0].desc.rank;
  size_t n = 0;
  const int64_t *list = hone_node_ints(step->node, "axes", &n);
  if (!list && step->n_anchor_inputs > 1 && step->input[1].desc.dtype != HONE_DTYPE_NONE) {
    const hone_step_tensor *t = &step->input[1];
    if (!t->constant || t->desc.dtype != HONE_DTYPE_I64)
      return hn_refuse(why, "the axes are not constant i64");
    list = t->constant, n = (size_t)hone_desc_count(&t->desc);
  }
  *axes = 0;
  for (size_t i = 0; i < n; i++) {
    const int64_t axis = list[i] < 0 ? list[i] + rank : list[i];
    if (axis < 0 || axis >= rank) return hn_refuse(why, "axis outside the rank");
    *axes |= 1u << axis;
  }
  if (n == 0 && !hone_node_int(step->node, "noop_with_empty_axes", 0)) *axes = (1u << rank) - 1u;
  return true;
}
