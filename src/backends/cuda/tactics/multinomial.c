/* Multinomial with a seed. */
#include "backends/cuda/common/random.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank != 2 || x->dim[1] < 1) return hn_refuse(why, "no classes");
  p->args.p[1] = x->dim[1], p->args.p[2] = s->output[0].desc.dim[1];
  p->workspace = (size_t)hone_desc_count(x) * sizeof(double);
  p->seconds = (double)x->dim[1] * 2e-8; /* running sums, one after the other */
  hn_cuda_direct_add(p, "hn_random", x->dim[0], 128);
  return hn_cuda_random(s, "HN_MULTINOMIAL", p, why);
}

HN_CUDA_TACTIC_UNPACKED(multinomial, "Multinomial", hn_cuda_direct, plan);
