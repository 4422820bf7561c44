/* MaxUnpool. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"
#include "model/ops/common/window.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  hn_window w;
  if (x->rank < 3 || x->rank > 5 || y->rank != x->rank) return hn_refuse(why, "rank %d", (int)x->rank);
  if (hn_window_init_transposed(&w, s->node, x, NULL, NULL) != HONE_OK)
    return hn_refuse(why, "windows that do not fit");
  p->text = "unpool", p->zeroed = 1;
  hn_cuda_direct_define(p, "HN_UNPOOL", 1);
  p->args.p[0] = x->rank, p->args.p[1] = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    p->args.p[4 + d] = d < 2 ? x->dim[d] : w.out[d - 2];
    p->args.p[12 + d] = y->dim[d];
    p->args.p[1] *= p->args.p[4 + d];
  }
  hn_cuda_direct_add(p, "hn_max_unpool", hone_desc_count(x), 0);
  return true;
}

hn_cuda_direct_tactic(max_unpool, "MaxUnpool", plan);
