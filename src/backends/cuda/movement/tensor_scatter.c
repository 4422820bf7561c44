/* TensorScatter: a cache, and in it the slices of the update. Where the cache that comes is the one that is
 * handed on, these are all that is written. */
#include <string.h>

#include "backends/cuda/movement/indexed.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "optimize/step/axes.h"

enum { CACHE, UPDATE, INDICES };

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[CACHE].desc, *u = &s->input[UPDATE].desc;
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", -2), x->rank, &axis, why)) return false;
  if (u->dtype != x->dtype || s->output[0].desc.dtype != x->dtype)
    return hn_refuse(why, "the update is %s", hone_dtype_name(u->dtype));
  if (hn_cuda_has(s, INDICES) && s->input[INDICES].desc.dtype != HONE_DTYPE_I64)
    return hn_refuse(why, "indices are not i64");
  p->body = "hn_tensor_scatter", p->copied = true;
  p->in[0] = UPDATE, p->in[1] = hn_cuda_has(s, INDICES) ? INDICES : -1;
  p->args.p[0] = hn_dims(x, axis + 1, x->rank);
  p->args.p[1] = u->dim[axis], p->args.p[2] = x->dim[axis], p->args.p[3] = hn_dims(x, 1, axis);
  p->args.p[4] = strcmp(hone_node_string(s->node, "mode", "linear"), "circular") == 0;
  p->args.count = hone_desc_count(u);
  p->run = p->args.p[0] * p->element;
  if (HN_FAULT("cuda_tensor_scatter_axis") && p->args.p[3] > 1) p->args.p[3]--;
  return true;
}

static int32_t over(const hone_step *s, uint32_t i) {
  (void)s;
  return i == 0 ? CACHE : -1;
}

HN_TACTIC_CONFIGURED(tensor_scatter, hn_cuda_indexed, plan)
HN_TACTIC(cuda, tensor_scatter, "TensorScatter", 1, .accepts = tensor_scatter_accepts,
          .cost = tensor_scatter_cost, .run = tensor_scatter_run, .over = over);
