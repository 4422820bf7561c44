/* The discrete Fourier transform of references. */
#include "model/ops/signal/fourier.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

hone_status hn_fourier_make(hone_call *call, int64_t n, bool inverse, hn_fourier *f, hone_error *error) {
  *f = (hn_fourier){.n = n, .inverse = inverse};
  f->cosine = hn_scratch(call, n, sizeof(double), error);
  f->sine = f->cosine ? hn_scratch(call, n, sizeof(double), error) : NULL;
  f->spare = f->sine ? hn_scratch(call, n, 2 * sizeof(double), error) : NULL;
  if (!f->spare) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    f->cosine[i] = cos(2 * M_PI * (double)i / (double)n);
    f->sine[i] = (inverse ? 1 : -1) * sin(2 * M_PI * (double)i / (double)n);
  }
  return HONE_OK;
}

/* Decimation in time: bits reversed, then butterflies of growing length. */
static void powers_of_two(const hn_fourier *f, double *re, double *im) {
  for (int64_t i = 1, j = 0; i < f->n; i++) {
    int64_t bit = f->n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    double r = re[i], m = im[i];
    re[i] = re[j], im[i] = im[j];
    re[j] = r, im[j] = m;
  }
  for (int64_t length = 2; length <= f->n; length *= 2)
    for (int64_t start = 0; start < f->n; start += length)
      for (int64_t k = 0; k < length / 2; k++) {
        int64_t a = start + k, b = a + length / 2, w = k * (f->n / length);
        double r = re[b] * f->cosine[w] - im[b] * f->sine[w], m = re[b] * f->sine[w] + im[b] * f->cosine[w];
        re[b] = re[a] - r, im[b] = im[a] - m;
        re[a] += r, im[a] += m;
      }
}

hone_status hn_fourier_run(hone_call *call, const hn_fourier *f, double *re, double *im, hone_error *error) {
  hone_status status = hn_call_check(call, error);
  if (status) return status;
  int64_t n = f->n;
  if ((n & (n - 1)) == 0)
    powers_of_two(f, re, im);
  else {
    double *out_re = f->spare, *out_im = f->spare + n;
    for (int64_t k = 0; k < n; k++) {
      double r = 0, m = 0;
      if (k % 64 == 0) {
        status = hn_call_check(call, error);
        if (status) return status;
      }
      for (int64_t i = 0, w = 0; i < n; i++) {
        r += re[i] * f->cosine[w] - im[i] * f->sine[w];
        m += re[i] * f->sine[w] + im[i] * f->cosine[w];
        w += k;
        if (w >= n) w -= n;
      }
      out_re[k] = r, out_im[k] = m;
    }
    memcpy(re, out_re, (size_t)n * sizeof *re);
    memcpy(im, out_im, (size_t)n * sizeof *im);
  }
  for (int64_t i = 0; f->inverse && i < n; i++) re[i] /= (double)n, im[i] /= (double)n;
  return HONE_OK;
}
