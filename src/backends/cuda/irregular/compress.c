/* Compress. */
#include "backends/cuda/irregular/collect.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int64_t outer = 1, length = hone_desc_count(x), inner = 1;
  int32_t axis = 0;
  if (hone_node_has(s->node, "axis")) {
    if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
    outer = hn_dims(x, 0, axis), length = x->dim[axis];
    inner = hn_dims(x, axis + 1, x->rank);
  }
  const int64_t given = hone_desc_count(&s->input[1].desc), n = given < length ? given : length;
  hn_cuda_collect(p, 1, n);
  hn_cuda_direct_define(p, "HN_COMPRESSED", 1);
  p->workspace += (size_t)n * sizeof(uint32_t);
  p->args.p[4] = outer, p->args.p[5] = length, p->args.p[6] = inner > 0 ? inner : 1, p->args.p[7] = axis;
  hn_cuda_direct_add(p, "hn_compress", outer * n * inner, 0);
  return true;
}

hn_cuda_direct_tactic(compress, "Compress", plan);
