/* FusedConv: activation(Conv(x, w, bias) + z), as ONNX Runtime writes it into files that it optimised. */
#include "model/ops/conv/conv_core.h"
#include "model/ops/microsoft/activations/fused_activation.h"

enum { X, W, BIAS, Z };
extern const hone_op_desc hn_op_conv;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_fused_activation a;
  hn_inner conv;
  hone_status s = hn_fused_activation_of(io->node, &a, error);
  hn_inner_same(&conv, io->node, &hn_op_conv, 11);
  if (!s) s = hn_infer_same_dtype(io, X, Z, error);
  if (!s) s = hn_inner_infer(io, &conv, error);
  if (s || !io->output[0] || !hn_has_input(io, Z)) return s;
  const hone_tensor_desc *y = io->output[0], *z = io->input[Z];
  for (int32_t d = 0; d < y->rank && z->rank >= 0; d++)
    if (z->rank != y->rank || hn_dims_differ(z->dim[d], y->dim[d]))
      return hn_op_bad(io->node, error, "what is added to the convolution has another shape");
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_conv_cost(io, W, cost); }

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  hn_inner conv;
  hn_inner_same(&conv, call->node, &hn_op_conv, 11);
  const uint32_t n_in = call->n_inputs < Z ? call->n_inputs : Z;
  const hone_status s = hn_inner_run(call, &conv, call->input, n_in, &y, 1, error);
  if (s) return s;
  if (hn_call_has(call, Z)) {
    enum { CHUNK = 256 };
    double a[CHUNK], b[CHUNK];
    for (int64_t i = 0, n = hn_count(y); i < n; i += CHUNK) {
      const int64_t part = hn_min(CHUNK, n - i);
      hn_load_f64(a, y, i, part);
      hn_load_f64(b, call->input[Z], i, part);
      for (int64_t k = 0; k < part; k++) a[k] += b[k];
      hn_store_f64(y, i, a, part);
    }
  }
  return hn_fused_activate(call, y, error);
}

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, HN_FUSED_ACTIVATION_ATTRS, {0}};

HN_OP(fused_conv) = {HONE_DESC_HEAD(hone_op_desc),
                     .domain = "com.microsoft",
                     .op_type = "FusedConv",
                     .since = 1,
                     HN_INPUTS(2, 4),
                     HN_OUTPUTS(1, 1),
                     .types = HN_TYPES_FLOAT,
                     .attrs = attrs,
                     .infer = infer,
                     .cost = cost,
                     .reference = reference};
