/* ReverseSequence: the beginnings of sequences, backwards. */
#include "backends/cuda/movement/indexed.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (x->rank < 2 || s->input[1].desc.dtype != HONE_DTYPE_I64 || s->output[0].desc.dtype != x->dtype)
    return hn_refuse(why, "no sequences with i64 lengths");
  p->body = "hn_reverse_sequence", p->in[0] = 0, p->in[1] = 1;
  p->args.p[0] = hn_dims(x, 2, x->rank);
  p->args.p[1] = x->dim[0], p->args.p[2] = x->dim[1];
  p->args.p[3] = hone_node_int(s->node, "batch_axis", 1) == 0;
  p->args.count = hone_desc_count(x);
  p->run = p->args.p[0] * p->element;
  return true;
}

hn_cuda_indexed_tactic(reverse_sequence, "ReverseSequence", plan);
