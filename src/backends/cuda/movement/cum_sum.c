/* CumSum along a constant axis: a thread a line. */
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/step/functions.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  hone_dtype type;
  int32_t axis;
  if (!hn_cuda_indices(s, 1, &type, why)) return false;
  const void *at = s->input[1].constant;
  if (!at) return hn_refuse(why, "the axis is not constant");
  if (!hn_step_axis(type == HONE_DTYPE_I32 ? *(const int32_t *)at : *(const int64_t *)at, x->rank, &axis,
                    why))
    return false;
  if (s->output[0].desc.dtype != x->dtype || !hn_cuda_value(x->dtype)) return hn_refuse(why, "types differ");
  p->body = "hn_cum_sum", p->in[0] = 0, p->type = x->dtype;
  p->sum = hone_dtype_is_float(x->dtype) ? "double" : "u64";
  p->args.p[0] = hn_dims(x, axis + 1, x->rank), p->args.p[1] = x->dim[axis];
  p->args.p[2] = hone_node_int(s->node, "exclusive", 0) != 0;
  p->args.p[3] = hone_node_int(s->node, "reverse", 0) != 0;
  p->args.count = x->dim[axis] ? hone_desc_count(x) / x->dim[axis] : 0;
  return true;
}

hn_cuda_indexed_tactic(cum_sum, "CumSum", plan);
