/* LRN. */
#include "backends/cuda/step/direct.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  const int64_t size = hone_node_int(s->node, "size", 1);
  if (x->rank < 2 || !hone_dtype_is_float(x->dtype))
    return hn_refuse(why, "no channels of floating-point numbers");
  p->text = "statistics";
  hn_cuda_direct_define(p, "HN_LRN", 1);
  p->args.p[0] = x->dim[1], p->args.p[1] = hn_dims(x, 2, x->rank);
  p->args.p[2] = (size - 1) / 2, p->args.p[3] = size - 1 - (size - 1) / 2;
  p->args.f[0] = (double)hone_node_float(s->node, "alpha", 1e-4f) / (double)size;
  p->args.f[1] = (double)hone_node_float(s->node, "beta", 0.75f);
  p->args.f[2] = (double)hone_node_float(s->node, "bias", 1);
  hn_cuda_direct_add(p, "hn_lrn", hone_desc_count(x), 0);
  return true;
}

hn_cuda_direct_tactic(lrn, "LRN", plan);
