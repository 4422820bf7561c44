/* Irfft: the real signals of n = 2 (m - 1) points whose spectra begin with the given m points,
 * [..., m, 2] -> [..., n]. What Rfft of them gives is the input again. */
#include "model/ops/microsoft/signal/spectrum.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_status s = hn_spectrum_check(io->node, error);
  hone_tensor_desc y = *x;
  if (s || x->rank < 0) {
    hn_infer_set(io, 0, x->dtype, -1, NULL);
    return s;
  }
  if (x->rank < 2) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  const int64_t m = x->dim[x->rank - 2], parts = x->dim[x->rank - 1];
  if (parts >= 0 && parts != 2)
    return hn_op_bad(io->node, error, "the last dimension is %lld, not 2", (long long)parts);
  if (m >= 0 && m < 2)
    return hn_op_bad(io->node, error, "%lld points are no spectrum of a signal", (long long)m);
  y.dim[x->rank - 2] = m < 0 ? HONE_DIM_UNKNOWN : 2 * (m - 1);
  hn_infer_set(io, 0, x->dtype, x->rank - 1, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t m = x->desc.dim[x->desc.rank - 2], n = 2 * (m - 1);
  const int64_t lines = hn_count(x) / (2 * m);
  hn_spectrum t;
  hone_status s = lines ? hn_spectrum_make(call, n, true, &t, error) : HONE_OK;
  for (int64_t i = 0; i < lines && !s; i++) {
    for (int64_t k = 0; k < m; k++) {
      double point[2];
      hn_load_f64(point, x, 2 * (i * m + k), 2);
      t.re[k] = point[0], t.im[k] = hn_dft_is_real(n, k) ? 0 : point[1];
    }
    for (int64_t k = m; k < n; k++) t.re[k] = t.re[n - k], t.im[k] = -t.im[n - k];
    s = hn_fourier_run(call, &t.turns, t.re, t.im, error);
    if (!s) hn_store_f64(call->output[0], i * n, t.re, n);
  }
  return s;
}

HN_SPECTRUM_OP(irfft, "Irfft")
