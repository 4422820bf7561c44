/* Unique elements, or slices along an axis. */
#include "backends/cuda/device/counted_args.h"
#include "backends/cuda/irregular/order.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int64_t axis = hone_node_int(s->node, "axis", 0), outer = 1, n = hone_desc_count(x), inner = 1;
  if (axis < 0) axis += x->rank;
  if (hone_node_has(s->node, "axis")) {
    if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
    outer = hn_cuda_dims(x, 0, (int32_t)axis), n = x->dim[axis],
    inner = hn_cuda_dims(x, (int32_t)axis + 1, x->rank);
    if (n > 0 && outer * inner == 0) return hn_refuse(why, "the slices have no elements");
  } else {
    axis = 0;
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
