/* The discrete Fourier transform of references. */
#include "model/ops/signal/fourier.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

/* Sums of more numbers than this are f64, whatever the data are. */
#define LONGEST 11

#define HN_PASTE_(a, b) a##b
#define HN_PASTE(a, b) HN_PASTE_(a, b)

#define REAL float
#define RUN run_f32
#include "model/ops/signal/fourier_passes.h"
#undef REAL
#undef RUN
#define REAL double
#define RUN run_f64
#include "model/ops/signal/fourier_passes.h"
#undef REAL
#undef RUN

/* Fours first, as they cost least, then what is left of the powers of two, then the odd primes; a lone two
 * changes places with the first four, so that long runs of points lie together in its pass. Returns the
 * largest. */
static int64_t factorize(hn_fourier *f) {
  int64_t n = f->n, largest = 1;
  f->factors = 0;
  for (; n % 4 == 0; n /= 4) f->factor[f->factors++] = 4;
  if (n % 2 == 0) {
    n /= 2;
    f->factor[f->factors++] = 2;
    int64_t first = f->factor[0];
    f->factor[0] = 2, f->factor[f->factors - 1] = first;
  }
  for (int64_t p = 3; n > 1; p += 2) {
    if (p > n / p) p = n;
    for (; n % p == 0; n /= p) f->factor[f->factors++] = largest = p;
  }
  return largest;
}

hone_status hn_fourier_make(hone_call *call, int64_t n, bool inverse, hone_dtype type, hn_fourier *f,
                            hone_error *error) {
  *f = (hn_fourier){.n = n, .inverse = inverse};
  f->narrow = factorize(f) <= LONGEST && inverse && type != HONE_DTYPE_F64;
  f->cosine = hn_scratch(call, n, sizeof(double), error);
  f->sine = f->cosine ? hn_scratch(call, n, sizeof(double), error) : NULL;
  f->spare = f->sine ? hn_scratch(call, n, 6 * sizeof(double), error) : NULL;
  if (!f->spare) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    f->cosine[i] = cos(2 * M_PI * (double)i / (double)n);
    f->sine[i] = (inverse ? 1 : -1) * sin(2 * M_PI * (double)i / (double)n);
  }
  return HONE_OK;
}

hone_status hn_fourier_run(hone_call *call, const hn_fourier *f, double *re, double *im, hone_error *error) {
  return f->narrow ? run_f32(call, f, re, im, error) : run_f64(call, f, re, im, error);
}
