/* ScatterND: a copy of the data, and all updates of an element one after the other. */
#include "backends/cuda/movement/indexed.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  if (!hn_cuda_indices(s, 1, &p->index, why) || !hn_cuda_combine(s, &p->combine, why)) return false;
  if (s->input[2].desc.dtype != x->dtype || s->output[0].desc.dtype != x->dtype)
    return hn_refuse(why, "updates are %s", hone_dtype_name(s->input[2].desc.dtype));
  if (i->rank < 1 || i->dim[i->rank - 1] > x->rank) return hn_refuse(why, "tuples are too long");
  const int64_t depth = i->dim[i->rank - 1];
  p->body = "hn_scatter_nd", p->type = x->dtype, p->copied = true;
  p->in[0] = 0, p->in[1] = 1, p->in[2] = 2;
  p->args.p[0] = p->args.count = hn_dims(x, (int32_t)depth, x->rank);
  p->args.p[1] = hn_dims(i, 0, i->rank - 1), p->args.p[2] = depth;
  for (int32_t k = 0; k < depth; k++) {
    p->args.p[4 + k] = x->dim[k];
    p->args.p[12 + k] = hn_dims(x, k + 1, x->rank);
  }
  return true;
}

hn_cuda_indexed_tactic(scatter_nd, "ScatterND", plan);
