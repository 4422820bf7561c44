/* Gather of blocks along one axis (embeddings, picked channels). f32 tables give results in the storage type.
 */
#include "backends/cuda/movement/indexed.h"
#include "backends/cuda/step/functions.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int32_t axis;
  if (!hn_cuda_indices(s, 1, &p->index, why) ||
      !hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why))
    return false;
  const hone_dtype from = x->dtype, to = s->output[0].desc.dtype;
  if (from != to && !(hn_cuda_type(from) && hn_cuda_type(to)))
    return hn_refuse(why, "the data is %s", hone_dtype_name(from));
  p->body = from == to ? "hn_gather" : "hn_gather_convert", p->in[0] = 0, p->in[1] = 1;
  if (from != to) p->type = from, p->result = to;
  p->args.p[0] = hn_dims(x, axis + 1, x->rank);
  p->args.p[1] = hone_desc_count(&s->input[1].desc), p->args.p[2] = x->dim[axis];
  p->args.count = hone_desc_count(&s->output[0].desc);
  p->run = from == to ? p->args.p[0] * p->element : 0;
  return true;
}

hn_cuda_indexed_tactic(gather, "Gather", plan);
