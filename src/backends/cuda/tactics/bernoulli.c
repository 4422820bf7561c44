/* Bernoulli with a seed. */
#include "backends/cuda/common/random.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  hn_cuda_direct_add(p, "hn_random", hone_desc_count(&s->output[0].desc), 0);
  return hn_cuda_random(s, "HN_BERNOULLI", p, why);
}

HN_CUDA_TACTIC_UNPACKED(bernoulli, "Bernoulli", hn_cuda_direct, plan);
