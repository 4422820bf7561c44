/* The integer convolutions (quant_conv.h). */
#include "model/ops/quantized/quant_conv.h"

hone_status hn_infer_quant_param(const hone_infer *io, uint32_t i, int64_t length, hone_error *error) {
  if (!hn_has_input(io, i) || io->input[i]->rank == 0 || hone_desc_count(io->input[i]) == 1) return HONE_OK;
  return hn_infer_vector(io, i, length, error);
}

/* t less its zero point, as float: differences of 8-bit values are exact. One zero point for `run` elements.
 */
static const float *shifted(hone_call *call, const hone_tensor *t, const hone_tensor *zero, int64_t run,
                            hone_error *error) {
  int64_t n = hn_count(t);
  hn_quant_param z = hn_quant_param_of(zero);
  float *out = hn_scratch(call, n, sizeof *out, error);
  if (!out) return NULL;
  hn_load_f32(out, t, 0, n);
  for (int64_t r = 0; run && r < n / run; r++) {
    float by = (float)hn_quant_at(z, r);
    for (int64_t i = 0; i < run; i++) out[r * run + i] -= by;
  }
  return out;
}

hone_status hn_quant_conv(hone_call *call, uint32_t w_input, const hone_tensor *x_zero,
                          const hone_tensor *w_zero, hn_conv_sink sink, void *arg, hone_error *error) {
  const hone_tensor *x = call->input[0], *w = call->input[w_input];
  hn_conv c;
  hone_status s = hn_conv_init(&c, call->node, &x->desc, &w->desc, error);
  if (s) return s;
  const float *xf = shifted(call, x, x_zero, hn_count(x), error);
  const float *wf = xf ? shifted(call, w, w_zero, hn_dims(&w->desc, 1, w->desc.rank), error) : NULL;
  if (!wf) return HONE_ERROR_MEMORY;
  return hn_conv_forward(call, &c, HONE_DTYPE_F32, xf, wf, sink, arg, error);
}
