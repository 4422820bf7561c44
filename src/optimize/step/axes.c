#include "optimize/step/axes.h"

#include "base/error.h"

bool hn_step_ints(const hone_step *step, const char *name, uint32_t index, int64_t out[HONE_MAX_RANK],
                  int32_t *n) {
  size_t count = 0;
  const int64_t *attr = hone_node_ints(step->node, name, &count);
  *n = 0;
  if (attr) {
    for (size_t i = 0; i < count && i < HONE_MAX_RANK; i++) out[(*n)++] = attr[i];
    return true;
  }
  if (index >= step->n_anchor_inputs || step->input[index].desc.dtype == HONE_DTYPE_NONE) return true;
  const hone_step_tensor *t = &step->input[index];
  const bool narrow = t->desc.dtype == HONE_DTYPE_I32;
  if (!t->constant || (!narrow && t->desc.dtype != HONE_DTYPE_I64)) return false;
  const int64_t length = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < length && i < HONE_MAX_RANK; i++)
    out[(*n)++] = narrow ? ((const int32_t *)t->constant)[i] : ((const int64_t *)t->constant)[i];
  return true;
}

bool hn_step_axis(int64_t given, int32_t rank, int32_t *axis, hone_reason *why) {
  if (given < 0) given += rank;
  *axis = (int32_t)given;
  return given >= 0 && given < rank ? true : hn_refuse(why, "axis outside the rank");
}

bool hn_step_axes(const hone_step *step, uint32_t *axes, hone_reason *why) {
  const int32_t rank = step->input[0].desc.rank;
  int64_t list[HONE_MAX_RANK];
  int32_t n, axis;
  if (!hn_step_ints(step, "axes", 1, list, &n)) return hn_refuse(why, "the axes are not constant integers");
  *axes = 0;
  for (int32_t i = 0; i < n; i++) {
    if (!hn_step_axis(list[i], rank, &axis, why)) return false;
    *axes |= 1u << axis;
  }
  if (n == 0 && !hone_node_int(step->node, "noop_with_empty_axes", 0)) *axes = (1u << rank) - 1u;
  return true;
}
