/* CenterCropPad. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  if (x->rank > 8) return hn_refuse(why, "more than 8 dimensions");
  p->text = "center_crop_pad";
  p->args.p[0] = x->rank;
  for (int32_t d = 0; d < x->rank; d++) {
    const int64_t in = x->dim[d], out = y->dim[d];
    p->args.p[4 + d] = in, p->args.p[12 + d] = out;
    p->args.p[20 + d] = in > out ? (in - out) / 2 : -((out - in) / 2);
  }
  hn_cuda_direct_add(p, "hn_center_crop_pad", hone_desc_count(y), 0);
  return true;
}

hn_cuda_direct_tactic(center_crop_pad, "CenterCropPad", plan);
