/* TopK along any axis, any k that is known. */
#include "backends/cuda/common/order.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[hn_cuda_gives(s, 0) ? 0 : 1].desc;
  int64_t axis = hone_node_int(s->node, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank || x->dim[axis] > INT32_MAX)
    return hn_refuse(why, "axis outside the rank, or huge");
  const int64_t n = x->dim[axis], k = y->dim[axis], inner = hn_cuda_dims(x, (int32_t)axis + 1, x->rank);
  const int64_t lines = hn_cuda_dims(x, 0, (int32_t)axis) * inner;
  const int64_t padded = hn_cuda_sort_padded(n <= HN_CUDA_SORT_NEAR ? n : k);
  p->text = "top_k";
  hn_cuda_direct_define(p, "HN_LARGEST", hone_node_int(s->node, "largest", 1) != 0);
  const size_t key = hn_cuda_order(p, x->dtype);
  p->args.p[0] = n, p->args.p[1] = k, p->args.p[2] = inner, p->args.p[3] = padded;
  if (padded > HN_CUDA_SORT_NEAR) p->workspace = (size_t)(lines * padded) * (key + sizeof(uint32_t));
  hn_cuda_direct_add(p, "hn_top_k", k ? lines : 0, 256);
  p->seconds = 10e-6; /* a chain of passes within each block */
  return true;
}

HN_CUDA_DIRECT(top_k, "TopK", plan);
