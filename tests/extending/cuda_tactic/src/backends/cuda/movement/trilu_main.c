/* Trilu: triangles on the main diagonal. */
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (hn_cuda_has(s, 1)) return hn_refuse(why, "the diagonal is not the main one");
  if (x->rank < 2 || s->output[0].desc.dtype != x->dtype) return hn_refuse(why, "no matrices of one type");
  p->body = "hn_trilu", p->in[0] = 0, p->in[1] = -1;
  p->args.p[0] = x->dim[x->rank - 2], p->args.p[1] = x->dim[x->rank - 1];
  p->args.p[2] = hone_node_int(s->node, "upper", 1) != 0;
  p->args.count = hone_desc_count(x);
  return true;
}

hn_cuda_indexed_tactic(trilu_main, "Trilu", plan);
