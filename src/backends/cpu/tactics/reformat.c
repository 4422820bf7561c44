/* Reformat: the same elements in another layout (row-major to channels-last and back, other channel pitches).
 */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "a reformat keeps the dimensions");
  const hn_move_side dst = hn_move_side_of(0, y), src = hn_move_side_of(0, x);
  hn_moves_add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(reformat, "Reformat");
