/* Rfft: points 0 to n / 2 of the spectrum of the real signals along the last axis, [..., n] -> [..., n / 2 +
 * 1, 2]. */
#include "model/ops/microsoft/signal/spectrum.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_status s = hn_spectrum_check(io->node, error);
  hone_tensor_desc y = *x;
  if (s || x->rank < 0) {
    hn_infer_set(io, 0, x->dtype, -1, NULL);
    return s;
  }
  if (x->rank < 1 || x->rank == HONE_MAX_RANK)
    return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  const int64_t n = x->dim[x->rank - 1];
  y.dim[x->rank - 1] = n < 0 ? HONE_DIM_UNKNOWN : n / 2 + 1;
  y.dim[x->rank] = 2;
  hn_infer_set(io, 0, x->dtype, x->rank + 1, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t n = x->desc.dim[x->desc.rank - 1];
  if (n < 1 && hn_count(call->output[0]))
    return hn_op_bad(call->node, error, "there is nothing to transform");
  const int64_t lines = n < 1 ? 0 : hn_count(x) / n, out = n / 2 + 1;
  hn_spectrum t;
  hone_status s = lines ? hn_spectrum_make(call, n, false, &t, error) : HONE_OK;
  for (int64_t i = 0; i < lines && !s; i++) {
    hn_load_f64(t.re, x, i * n, n);
    memset(t.im, 0, (size_t)n * sizeof *t.im);
    s = hn_fourier_run(call, &t.turns, t.re, t.im, error);
    for (int64_t k = 0; k < out && !s; k++) {
      const double point[2] = {t.re[k], hn_dft_is_real(n, k) ? 0 : t.im[k]};
      hn_store_f64(call->output[0], 2 * (i * out + k), point, 2);
    }
  }
  return s;
}

HN_SPECTRUM_OP(rfft, "Rfft")
