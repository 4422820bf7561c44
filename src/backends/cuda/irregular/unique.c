/* Unique elements, or slices along an axis. */
#include "backends/cuda/device/counted_args.h"
#include "backends/cuda/irregular/order.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/axes.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int64_t outer = 1, n = hone_desc_count(x), inner = 1;
  int32_t axis = 0;
  if (hone_node_has(s->node, "axis")) {
    if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
    outer = hn_dims(x, 0, axis), n = x->dim[axis], inner = hn_dims(x, axis + 1, x->rank);
    if (n > 0 && outer * inner == 0) return hn_refuse(why, "the slices have no elements");
  }
  if (n > 1 << 24) return hn_refuse(why, "more than 2^24 items: one block sorts them");
  const int64_t padded = hn_cuda_sort_padded(n);
  p->text = "unique", p->counted = true;
  hn_cuda_direct_define(p, "HN_SORTED", hone_node_int(s->node, "sorted", 1) != 0);
  hn_cuda_order(p, x->dtype);
  p->args.p[0] = n, p->args.p[1] = outer, p->args.p[2] = inner, p->args.p[3] = padded, p->args.p[4] = axis;
  p->workspace = HN_COUNTED_BYTES + (size_t)(5 * padded + 1) * sizeof(uint32_t);
  hn_cuda_direct_add(p, "hn_unique", 1, 256);
  /* One block reads and compares everything, again for every doubling of the length. */
  double turns = 1;
  for (int64_t k = 1; k < padded; k *= 2) turns += 1;
  p->seconds = turns * turns * (1e-6 + (double)padded * 1e-10);
  return true;
}

hn_cuda_direct_tactic(unique, "Unique", plan);
