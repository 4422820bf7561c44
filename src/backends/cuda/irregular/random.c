#include "backends/cuda/irregular/random.h"

#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"

/* Names the distribution ("HN_UNIFORM") and reads the seed; a thread an output. */
static bool draw(const hone_step *s, const char *distribution, hn_cuda_direct *p, hone_reason *why) {
  if (!hone_node_has(s->node, "seed")) return hn_refuse(why, "without a seed every run is to differ");
  hn_rng rng = {hn_f32_bits(hone_node_float(s->node, "seed", 0))};
  hn_rng_u64(&rng);
  p->text = "random";
  hn_cuda_direct_define(p, distribution, 1);
  p->args.p[0] = (i64)rng.state;
  return true;
}

bool hn_cuda_random_uniform(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const double low = (double)hone_node_float(s->node, "low", 0);
  p->args.f[0] = low, p->args.f[1] = (double)hone_node_float(s->node, "high", 1) - low;
  hn_cuda_direct_add(p, "hn_random", hone_desc_count(&s->output[0].desc), 0);
  return draw(s, "HN_UNIFORM", p, why);
}

bool hn_cuda_random_normal(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  p->args.f[0] = (double)hone_node_float(s->node, "mean", 0);
  p->args.f[1] = (double)hone_node_float(s->node, "scale", 1);
  hn_cuda_direct_add(p, "hn_random", hone_desc_count(&s->output[0].desc), 0);
  return draw(s, "HN_NORMAL", p, why);
}

bool hn_cuda_bernoulli(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  hn_cuda_direct_add(p, "hn_random", hone_desc_count(&s->output[0].desc), 0);
  return draw(s, "HN_BERNOULLI", p, why);
}

bool hn_cuda_multinomial(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank != 2 || x->dim[1] < 1) return hn_refuse(why, "no classes");
  p->args.p[1] = x->dim[1], p->args.p[2] = s->output[0].desc.dim[1];
  p->workspace = (size_t)hone_desc_count(x) * sizeof(double);
  p->seconds = (double)x->dim[1] * 2e-8; /* running sums, one after the other */
  hn_cuda_direct_add(p, "hn_random", x->dim[0], 128);
  return draw(s, "HN_MULTINOMIAL", p, why);
}
