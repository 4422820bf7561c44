/* TopK along any axis, any k that is known. */
#include "backends/cuda/irregular/order.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/integers.h"
#include "optimize/step/axes.h"

enum {
  PART = 8192, /* elements that a block chooses from, where lines are cut */
  FEW = 66,    /* lines: fewer than half of the multiprocessors of a large chip have work */
  LONG = 4 * PART
};

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[hn_cuda_gives(s, 0) ? 0 : 1].desc;
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", -1), x->rank, &axis, why)) return false;
  if (x->dim[axis] > INT32_MAX) return hn_refuse(why, "the axis is too long");
  const int64_t n = x->dim[axis], k = y->dim[axis], inner = hn_dims(x, axis + 1, x->rank);
  const int64_t lines = hn_dims(x, 0, axis) * inner;
  const int64_t padded = hn_cuda_sort_padded(n <= HN_CUDA_SORT_NEAR ? n : k);
  p->text = "top_k";
  hn_cuda_direct_define(p, "HN_LARGEST", hone_node_int(s->node, "largest", 1) != 0);
  const size_t key = hn_cuda_order(p, x->dtype);
  p->args.p[0] = n, p->args.p[1] = k, p->args.p[2] = inner, p->args.p[3] = padded;
  if (lines < FEW && n >= LONG && k > 0 && k <= PART / 8) {
    const int64_t parts = hn_div_up(n, PART);
    p->args.p[4] = PART, p->args.p[5] = parts;
    p->workspace = (size_t)(lines * parts * k) * (key + sizeof(uint32_t));
    hn_cuda_direct_add(p, "hn_top_k_part", lines * parts, 256);
    hn_cuda_direct_add(p, "hn_top_k_join", lines, 256);
    p->seconds = 40e-6; /* two chains of passes, each within a block */
    return true;
  }
  if (padded > HN_CUDA_SORT_NEAR) p->workspace = (size_t)(lines * padded) * (key + sizeof(uint32_t));
  hn_cuda_direct_add(p, "hn_top_k", k ? lines : 0, 256);
  p->seconds =
      n <= HN_CUDA_SORT_NEAR ? 10e-6 : 10e-6 + (double)n * 6e-9; /* a chain of passes within each block */
  return true;
}

hn_cuda_direct_tactic(top_k, "TopK", plan);
