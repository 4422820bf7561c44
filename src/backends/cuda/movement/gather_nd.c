/* GatherND: blocks picked by tuples of indices. */
#include "backends/cuda/movement/indexed.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  const int64_t batch = hone_node_int(s->node, "batch_dims", 0);
  if (!hn_cuda_indices(s, 1, &p->index, why)) return false;
  if (s->output[0].desc.dtype != x->dtype) return hn_refuse(why, "the data is %s", hone_dtype_name(x->dtype));
  if (i->rank < 1 || batch < 0 || batch >= i->rank) return hn_refuse(why, "batch_dims outside the rank");
  const int64_t depth = i->dim[i->rank - 1];
  if (depth < 1 || batch + depth > x->rank) return hn_refuse(why, "tuples of %lld", (long long)depth);
  p->body = "hn_gather_nd", p->in[0] = 0, p->in[1] = 1;
  p->args.p[0] = hn_dims(x, (int32_t)(batch + depth), x->rank);
  p->args.p[1] = hn_dims(i, (int32_t)batch, i->rank - 1), p->args.p[2] = depth;
  p->args.p[3] = hn_dims(x, (int32_t)batch, x->rank);
  for (int32_t k = 0; k < depth; k++) {
    p->args.p[4 + k] = x->dim[batch + k];
    p->args.p[12 + k] = hn_dims(x, (int32_t)batch + k + 1, x->rank);
  }
  p->args.count = hone_desc_count(&s->output[0].desc);
  p->run = p->args.p[0] * p->element;
  return true;
}

hn_cuda_indexed_tactic(gather_nd, "GatherND", plan);
