/* Det: determinants by elimination in f64. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank < 2 || !hone_dtype_is_float(x->dtype))
    return hn_refuse(why, "no matrices of floating-point numbers");
  const int64_t n = x->dim[x->rank - 1];
  p->text = "statistics";
  hn_cuda_direct_define(p, "HN_DET", 1);
  p->args.p[0] = n;
  p->workspace = (size_t)hone_desc_count(x) * sizeof(double);
  hn_cuda_direct_add(p, "hn_det", hone_desc_count(&s->output[0].desc), 128);
  return true;
}

hn_cuda_direct_tactic(det, "Det", plan);
