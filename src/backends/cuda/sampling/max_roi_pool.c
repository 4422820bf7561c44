/* MaxRoiPool. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  if (x->rank != 4 || y->rank != 4 || !hone_dtype_is_float(x->dtype))
    return hn_refuse(why, "no images of floating-point numbers");
  p->text = "regions";
  for (int k = 0; k < 3; k++) p->args.p[k] = x->dim[1 + k];
  p->args.p[3] = y->dim[2], p->args.p[4] = y->dim[3], p->args.p[5] = x->dim[0];
  p->args.f[0] = (double)hone_node_float(s->node, "spatial_scale", 1);
  hn_cuda_direct_add(p, "hn_max_roi_pool", hone_desc_count(y), 0);
  return true;
}

hn_cuda_direct_tactic(max_roi_pool, "MaxRoiPool", plan);
