/* RoiAlign, averages and maxima. */
#include <string.h>

#include "backends/cuda/step/direct.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const char *usual = hone_node_opset(s->node) < 16 ? "output_half_pixel" : "half_pixel";
  if (x->rank != 4 || !hone_dtype_is_float(x->dtype) || x->dim[2] * x->dim[3] == 0)
    return hn_refuse(why, "no images of floating-point numbers");
  p->text = "regions";
  hn_cuda_direct_define(p, "HN_TAKE_MAX", !strcmp(hone_node_string(s->node, "mode", "avg"), "max"));
  hn_cuda_direct_define(
      p, "HN_HALF_PIXEL",
      !strcmp(hone_node_string(s->node, "coordinate_transformation_mode", usual), "half_pixel"));
  for (int k = 0; k < 3; k++) p->args.p[k] = x->dim[1 + k];
  p->args.p[3] = y->dim[2], p->args.p[4] = y->dim[3], p->args.p[5] = x->dim[0];
  p->args.p[6] = hone_node_int(s->node, "sampling_ratio", 0);
  p->args.f[0] = (double)hone_node_float(s->node, "spatial_scale", 1);
  hn_cuda_direct_add(p, "hn_roi_align", hone_desc_count(y), 0);
  return true;
}

hn_cuda_direct_tactic(roi_align, "RoiAlign", plan);
