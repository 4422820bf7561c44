/* AffineGrid: sampling grids of affine maps, in two or three dimensions. */
#include "backends/cuda/step/direct.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  const int32_t axes = y->rank - 2;
  if (axes < 2 || axes > 3) return hn_refuse(why, "a grid of rank %d", (int)y->rank);
  p->text = "sample";
  hn_cuda_direct_define(p, "HN_GRID_AXES", axes);
  hn_cuda_direct_define(p, "HN_ALIGN", hone_node_int(s->node, "align_corners", 0) != 0);
  p->args.p[0] = hn_dims(y, 1, axes + 1);
  for (int32_t d = 0; d < axes; d++) p->args.p[4 + d] = y->dim[1 + d];
  hn_cuda_direct_add(p, "hn_affine_grid", y->dim[0] * p->args.p[0], 0);
  return true;
}

hn_cuda_direct_tactic(affine_grid, "AffineGrid", plan);
