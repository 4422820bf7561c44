/* DFT by its definition: n terms a point. */
#include "backends/cuda/signal/fourier.h"
#include "backends/cuda/step/direct.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  const bool inverse = hone_node_int(s->node, "inverse", 0) != 0,
             onesided = hone_node_int(s->node, "onesided", 0) != 0;
  int64_t axis = hone_node_int(s->node, "axis", 1), n;
  if (hone_node_opset(s->node) >= 20 && !hn_cuda_constant_int(s, 2, -2, &axis, why)) return false;
  if (axis < 0) axis += x->rank;
  if (x->rank < 2 || axis < 0 || axis >= x->rank - 1 || !hone_dtype_is_float(x->dtype))
    return hn_refuse(why, "no axis of floating-point numbers");
  const int64_t have = x->dim[axis], parts = inverse && onesided ? 1 : 2;
  if (!hn_cuda_constant_int(s, 1, parts == 1 ? 2 * (have - 1) : have, &n, why)) return false;
  if (n < 1 || n > INT32_MAX / 2) return hn_refuse(why, "a transform of %lld points", (long long)n);
  p->text = "fourier", p->blob = hn_cuda_turns_bytes(n);
  p->args.p[0] = n, p->args.p[1] = y->dim[axis], p->args.p[2] = have;
  p->args.p[3] = hn_dims(x, (int32_t)axis + 1, x->rank - 1);
  p->args.p[4] = x->dim[x->rank - 1], p->args.p[5] = parts;
  p->args.f[0] = inverse ? 1 / (double)n : 1;
  hn_cuda_direct_add(p, "hn_dft", hone_desc_count(y) / parts, 0);
  return true;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_cuda_direct p = {0};
  hone_reason why = {""};
  (void)m;
  if (!plan(s, &p, &why)) return hn_not_described(s, &why, error);
  hn_cuda_turns(blob, p.args.p[0], hone_node_int(s->node, "inverse", 0) != 0);
  return HONE_OK;
}

HN_CUDA_DIRECT_PACKED(dft, "DFT", plan, prepack);
