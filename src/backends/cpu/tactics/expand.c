/* Expand: the input broadcast to the output's dimensions, one move with strides of 0. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  const hn_move_side dst = hn_move_side_of(0, y);
  hn_move_side src = {.tensor = 0};
  const int32_t lead = y->rank - x->rank;
  if (lead < 0) return hn_refuse(why, "the output has fewer dimensions than the input");
  for (int32_t i = 0; i < x->rank; i++) {
    if (x->dim[i] != 1 && x->dim[i] != y->dim[lead + i])
      return hn_refuse(why, "dimension %d does not broadcast", (int)i);
    src.stride[lead + i] = x->dim[i] == 1 ? 0 : x->stride[i];
  }
  hn_moves_add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(expand, "Expand");
