#include "backends/cuda/signal/taper.h"

bool hn_cuda_taper(const hone_step *s, double a0, double a1, double a2, hn_cuda_direct *p, hone_reason *why) {
  const int64_t n = s->output[0].desc.dim[0];
  (void)why;
  p->text = "taper";
  hn_cuda_direct_define(p, "HN_TAPER", 1);
  p->args.p[0] = n;
  p->args.f[0] = a0, p->args.f[1] = a1, p->args.f[2] = a2;
  /* one point that is not a period is the middle of one */
  const bool periodic = hone_node_int(s->node, "periodic", 1);
  p->args.f[3] = (double)(periodic ? n : n - 1), p->args.f[4] = n == 1 && !periodic;
  hn_cuda_direct_add(p, "hn_taper", n, 0);
  return true;
}
