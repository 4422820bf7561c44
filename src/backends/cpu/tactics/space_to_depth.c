/* SpaceToDepth in any layout: one move. */
#include "backends/cpu/common/moves.h"
#include "backends/cpu/common/step.h"

static bool build(const hone_step *step, hn_moves_builder *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_moves_check(step, &element, why)) return false;
  const int64_t k = hone_node_int(step->node, "blocksize", 1);
  if (x->rank != 4 || y->rank != 4 || k < 1 || y->dim[1] != x->dim[1] * k * k)
    return hn_refuse(why, "not four-dimensional blocks");
  const int64_t c = x->dim[1];
  /* n, block row, block column, c, h, w */
  const int64_t dim[6] = {x->dim[0], k, k, c, y->dim[2], y->dim[3]};
  const hn_move_side src = {
      0, 0, {x->stride[0], x->stride[2], x->stride[3], x->stride[1], x->stride[2] * k, x->stride[3] * k}};
  const hn_move_side dst = {
      0, 0, {y->stride[0], y->stride[1] * k * c, y->stride[1] * c, y->stride[1], y->stride[2], y->stride[3]}};
  hn_moves_add(b, element, 6, dim, &dst, &src);
  return true;
}

HN_MOVES_TACTIC(space_to_depth, "SpaceToDepth");
