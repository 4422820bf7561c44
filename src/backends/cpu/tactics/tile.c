/* Tile: every dimension becomes (repeats, size), the repeats with stride 0 in the input; one move. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element, rank = 0;
  if (!hn_moves_check(step, &element, why)) return false;
  int64_t dim[HN_NEST_RANK];
  hn_move_side dst = {.tensor = 0}, src = {.tensor = 0};
  if (y->rank != x->rank) return hn_refuse(why, "input and output differ in rank");
  if (hone_desc_count(x) == 0) return true;
  for (int32_t i = 0; i < x->rank; i++) {
    const int64_t repeats = y->dim[i] / x->dim[i];
    if (rank + 2 > HN_NEST_RANK) return hn_refuse(why, "too many repeated dimensions");
    if (repeats != 1)
      dim[rank] = repeats, dst.stride[rank] = y->stride[i] * x->dim[i], src.stride[rank++] = 0;
    dim[rank] = x->dim[i], dst.stride[rank] = y->stride[i], src.stride[rank++] = x->stride[i];
  }
  hn_moves_add(b, element, rank, dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(tile, "Tile");
