/* Pad with a constant and constant widths (negative widths crop), any layout: the borders are filled, the
 * rest is one move. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

#include <string.h>

/* Begin and end widths per dimension. */
static bool widths(const hone_step *step, int64_t *begin, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc;
  size_t n = 0;
  const int64_t *pads = hone_node_ints(step->node,
                                       hone_node_has(step->node, "paddings") ? "paddings" : "pads", &n),
                *axes = NULL;
  int64_t n_axes = x->rank;
  memset(begin, 0, HONE_MAX_RANK * sizeof *begin);
  if (!pads && step->n_anchor_inputs > 1 && hn_step_has(step, 1))
    pads = step->input[1].constant, n = (size_t)hone_desc_count(&step->input[1].desc);
  if (!pads && n) return hn_refuse(why, "the widths are not constant");
  if (step->n_anchor_inputs > 3 && hn_step_has(step, 3)) {
    if (step->input[3].desc.dtype != HONE_DTYPE_I64 || !step->input[3].constant)
      return hn_refuse(why, "the axes are not constant i64");
    axes = step->input[3].constant, n_axes = hone_desc_count(&step->input[3].desc);
  }
  if ((int64_t)n != 2 * n_axes) return hn_refuse(why, "%zu widths for %lld axes", n, (long long)n_axes);
  for (int64_t i = 0; i < n_axes; i++) {
    const int64_t axis = !axes ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i];
    if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
    begin[axis] = pads[i];
  }
  return true;
}

static bool value_bits(const hone_step *step, int32_t element, uint64_t *bits, hone_reason *why) {
  *bits = 0;
  if (step->n_anchor_inputs > 2 && hn_step_has(step, 2)) {
    if (!step->input[2].constant) return hn_refuse(why, "the value is not constant");
    memcpy(bits, step->input[2].constant, (size_t)element);
  } else if (hone_node_has(step->node, "value")) {
    const float v = hone_node_float(step->node, "value", 0);
    if (step->input[0].desc.dtype != HONE_DTYPE_F32) return hn_refuse(why, "the value attribute is f32");
    memcpy(bits, &v, sizeof v);
  }
  return true;
}

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int64_t begin[HONE_MAX_RANK], box_at[HONE_MAX_RANK] = {0}, box[HONE_MAX_RANK] = {0};
  uint64_t bits;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  if (strcmp(hone_node_string(step->node, "mode", "constant"), "constant") != 0)
    return hn_refuse(why, "only constant padding");
  if (x->rank != y->rank || !widths(step, begin, why) || !value_bits(step, element, &bits, why)) return false;
  if (b->out) b->out->fill = bits;
  for (int32_t i = 0; i < y->rank; i++) box[i] = y->dim[i];
  hn_move_side dst = hn_move_side_of(0, y), src = hn_move_side_of(0, x);
  const hn_move_side zero = {.tensor = HN_MOVE_ZERO};
  /* Peel the borders off the output box, dimension by dimension; what remains is the copy. */
  for (int32_t i = 0; i < y->rank; i++) {
    const int64_t lo = begin[i] > 0 ? begin[i] : 0, crop = begin[i] < 0 ? -begin[i] : 0;
    const int64_t room = y->dim[i] - lo, keep = x->dim[i] - crop < room ? x->dim[i] - crop : room;
    const int64_t copied = keep > 0 ? keep : 0,
                  part[2][2] = {{0, lo < y->dim[i] ? lo : y->dim[i]}, {lo + copied, room - copied}};
    for (int k = 0; k < 2; k++) {
      int64_t dim[HONE_MAX_RANK];
      memcpy(dim, box, sizeof dim);
      dim[i] = part[k][1];
      if (dim[i] <= 0) continue;
      hn_move_side border = dst;
      border.at = part[k][0] * y->stride[i];
      for (int32_t j = 0; j < i; j++) border.at += box_at[j] * y->stride[j];
      hn_moves_add(b, element, y->rank, dim, &border, &zero);
    }
    box_at[i] = lo, box[i] = copied;
    dst.at += lo * y->stride[i], src.at += crop * x->stride[i];
    if (copied == 0) return true;
  }
  hn_moves_add(b, element, y->rank, box, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(pad, "Pad");
