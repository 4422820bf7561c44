/* NonZero. */
#include "backends/cuda/irregular/collect.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank > 8) return hn_refuse(why, "more than 8 dimensions");
  hn_cuda_collect(p, 0, hone_desc_count(x));
  p->args.p[2] = x->rank;
  for (int32_t d = 0; d < x->rank; d++) p->args.p[8 + d] = x->dim[d];
  return true;
}

hn_cuda_direct_tactic(non_zero, "NonZero", plan);
