/* Slice with constant bounds, any steps, any layout: one move. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

/* The list `name`: attribute of old opsets, or constant input `index` of i32 or i64. False: present but not
 * constant. */
static bool list_of(const hone_step *step, const char *name, uint32_t index, int64_t *out, int32_t *n) {
  size_t count = 0;
  const int64_t *attr = hone_node_ints(step->node, name, &count);
  *n = 0;
  if (attr) {
    for (size_t i = 0; i < count && i < HONE_MAX_RANK; i++) out[(*n)++] = attr[i];
    return true;
  }
  if (index >= step->n_anchor_inputs || !hn_step_has(step, index)) return true;
  const hone_step_tensor *t = &step->input[index];
  if (!t->constant) return false;
  const int64_t length = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < length && i < HONE_MAX_RANK; i++)
    out[(*n)++] = t->desc.dtype == HONE_DTYPE_I32 ? ((const int32_t *)t->constant)[i]
                                                  : ((const int64_t *)t->constant)[i];
  return true;
}

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int64_t starts[HONE_MAX_RANK], axes[HONE_MAX_RANK], steps[HONE_MAX_RANK];
  int32_t n, n_axes, n_steps, element;
  if (!hn_moves_check(step, &element, why)) return false;
  if (!list_of(step, "starts", 1, starts, &n) || !list_of(step, "axes", 3, axes, &n_axes) ||
      !list_of(step, "steps", 4, steps, &n_steps))
    return hn_refuse(why, "starts, axes and steps must be constant");
  const hn_move_side dst = hn_move_side_of(0, y);
  hn_move_side src = hn_move_side_of(0, x);
  for (int32_t i = 0; i < n; i++) {
    int64_t axis = n_axes ? axes[i] : i;
    const int64_t by = n_steps ? steps[i] : 1;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank || by == 0)
      return hn_refuse(why, "axis %d or its step is out of range", (int)i);
    const int64_t dim = x->dim[axis], last = by < 0 ? dim - 1 : dim;
    int64_t from = starts[i] < 0 ? starts[i] + dim : starts[i];
    from = from < 0 ? 0 : from > last ? last : from;
    /* The end is where inference put it: the output's dimension. */
    if (y->dim[axis] > 0 && (from + (y->dim[axis] - 1) * by < 0 || from + (y->dim[axis] - 1) * by >= dim))
      return hn_refuse(why, "axis %d leaves the input", (int)axis);
    src.at += from * x->stride[axis];
    src.stride[axis] = x->stride[axis] * by;
  }
  if (hone_desc_count(y) > 0) hn_moves_add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(slice, "Slice");
