/* GatherElements: single elements along one axis. */
#include "backends/cuda/movement/indexed.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  int32_t axis;
  if (!hn_cuda_indices(s, 1, &p->index, why) ||
      !hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why))
    return false;
  if (s->output[0].desc.dtype != x->dtype) return hn_refuse(why, "the data is %s", hone_dtype_name(x->dtype));
  p->body = "hn_gather_elements", p->in[0] = 0, p->in[1] = 1;
  p->args.p[0] = x->rank, p->args.p[1] = axis, p->args.p[2] = x->dim[axis];
  for (int32_t k = 0; k < x->rank; k++) {
    p->args.p[4 + k] = i->dim[k];
    p->args.p[12 + k] = hn_dims(x, k + 1, x->rank);
  }
  p->args.count = hone_desc_count(&s->output[0].desc);
  return true;
}

hn_cuda_indexed_tactic(gather_elements, "GatherElements", plan);
