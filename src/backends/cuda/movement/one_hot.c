/* OneHot of indices of any number type. */
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/step/functions.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", -1), y->rank, &axis, why)) return false;
  if (s->n_anchor_inputs < 3 || s->input[2].desc.dtype != y->dtype || !hn_cuda_value(s->input[0].desc.dtype))
    return hn_refuse(why, "values have another type than the output");
  p->body = "hn_one_hot", p->in[0] = 2, p->in[1] = 0, p->index = s->input[0].desc.dtype;
  p->args.p[0] = hn_dims(y, axis + 1, y->rank), p->args.p[1] = y->dim[axis];
  p->args.count = hone_desc_count(y);
  return true;
}

hn_cuda_indexed_tactic(one_hot, "OneHot", plan);
