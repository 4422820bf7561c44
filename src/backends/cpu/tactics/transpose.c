/* Transpose of any permutation and layout: one move. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  size_t n;
  const int64_t *perm = hone_node_ints(step->node, "perm", &n);
  if (perm && (int64_t)n != x->rank)
    return hn_refuse(why, "perm has %zu entries for rank %d", n, (int)x->rank);
  hn_move_side dst = hn_move_side_of(0, y), src = {.tensor = 0};
  for (int32_t i = 0; i < x->rank; i++) {
    const int64_t from = perm ? perm[i] : x->rank - 1 - i;
    if (from < 0 || from >= x->rank || x->dim[from] != y->dim[i])
      return hn_refuse(why, "perm does not give the output");
    src.stride[i] = x->stride[from];
  }
  hn_moves_add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(transpose, "Transpose");
