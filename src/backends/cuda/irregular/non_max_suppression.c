/* NonMaxSuppression. */
#include "backends/cuda/device/counted_args.h"
#include "backends/cuda/device/suppress_args.h"
#include "backends/cuda/irregular/order.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[1].desc;
  if (x->rank != 3 || s->input[0].desc.rank != 3) return hn_refuse(why, "no scores of classes");
  const int64_t lines = x->dim[0] * x->dim[1], n = x->dim[2];
  int64_t most = 0;
  if (hn_cuda_has(s, 2) && !hn_cuda_constant_int(s, 2, 0, &most, NULL)) most = n;
  most = most < 0 ? 0 : most > n ? n : most;
  p->text = "nms", p->counted = true;
  hn_cuda_direct_define(p, "HN_CENTER", hone_node_int(s->node, "center_point_box", 0) == 1);
  hn_cuda_order(p, HONE_DTYPE_F32);
  p->args.p[0] = x->dim[0], p->args.p[1] = x->dim[1], p->args.p[2] = n, p->args.p[3] = most;
  p->args.p[4] = hn_cuda_has(s, 4);
  p->workspace = HN_COUNTED_BYTES + (size_t)(lines + lines * most) * sizeof(uint32_t);
  hn_cuda_direct_add(p, "hn_nms", lines, HN_SUPPRESS_THREADS);
  hn_cuda_direct_add(p, "hn_nms_write", lines, 256);
  p->seconds = 10e-6; /* what is kept is found one after the other */
  return true;
}

hn_cuda_direct_tactic(non_max_suppression, "NonMaxSuppression", plan);
