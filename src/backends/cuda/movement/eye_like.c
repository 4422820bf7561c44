/* EyeLike: ones on a diagonal. */
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/step/functions.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  if (y->rank != 2 || !hn_cuda_value(y->dtype)) return hn_refuse(why, "no matrix of numbers");
  p->body = "hn_eye_like", p->type = y->dtype;
  p->args.p[0] = y->dim[1], p->args.p[1] = hone_node_int(s->node, "k", 0);
  p->args.count = hone_desc_count(y);
  return true;
}

hn_cuda_indexed_tactic(eye_like, "EyeLike", plan);
