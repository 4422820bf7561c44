/* Products of a sample with many vectors. */
#include "base/integers.h"
#include "base/wide.h"
#include "model/ops/classical/features.h"

enum { LANES = HN_FEATURES_LANES, SEVERAL = 8 };

typedef double wide __attribute__((vector_size(LANES * sizeof(double))));
typedef float narrow __attribute__((vector_size(LANES * sizeof(float))));

/* What n vectors are: f32 as the node has them, or f64 where that was made of them once for many samples. */
typedef struct vectors {
  const float *f32;
  const double *f64; /* NULL: f32 */
} vectors;

HN_WIDE_BODY void eight(vectors v, int64_t at, wide *of) {
  narrow part;
  if (v.f64) {
    memcpy(of, v.f64 + at, sizeof *of);
  } else {
    memcpy(&part, v.f32 + at, sizeof part);
    *of = __builtin_convertvector(part, wide);
  }
}

HN_WIDE_BODY double one(vectors v, int64_t at) { return v.f64 ? v.f64[at] : (double)v.f32[at]; }

/* A sample's products with some vectors from `at` on, or its squared distances from them: several sums go on
 * at once, because each addition waits for the one before it. Each sum is that of hn_features_product, to the
 * bit. */
HN_WIDE_BODY void sums_of(const double *x, vectors v, int64_t at, int64_t width, int several, bool apart,
                          double *out) {
  wide sum[SEVERAL] = {{0}};
  int64_t i = 0;
  for (; i + LANES <= width; i += LANES) {
    wide with;
    memcpy(&with, x + i, sizeof with);
#pragma GCC unroll 8
    for (int k = 0; k < several; k++) {
      wide of, d;
      eight(v, at + k * width + i, &of);
      d = with - of;
      sum[k] += apart ? d * d : with * of;
    }
  }
  for (int k = 0; k < several; k++) {
    double all = 0;
    for (int64_t r = i; r < width; r++) {
      const double of = one(v, at + k * width + r);
      all += apart ? (x[r] - of) * (x[r] - of) : x[r] * of;
    }
    for (int half = LANES / 2; half; half /= 2)
      for (int j = 0; j < half; j++) sum[k][j] += sum[k][j + half];
    out[k] = all + sum[k][0];
  }
}

HN_WIDE_BODY void sums_body(const double *x, vectors v, int64_t width, int64_t n, bool apart, double *out) {
  int64_t k = 0;
  for (; k + SEVERAL <= n; k += SEVERAL) sums_of(x, v, k * width, width, SEVERAL, apart, out + k);
  for (; k < n; k++) sums_of(x, v, k * width, width, 1, apart, out + k);
}

HN_WIDE_BODY void kinds_body(const double *x, vectors v, int64_t width, int64_t n, bool apart, double *out) {
  if (v.f64 && apart)
    sums_body(x, (vectors){NULL, v.f64}, width, n, true, out);
  else if (v.f64)
    sums_body(x, (vectors){NULL, v.f64}, width, n, false, out);
  else if (apart)
    sums_body(x, (vectors){v.f32, NULL}, width, n, true, out);
  else
    sums_body(x, (vectors){v.f32, NULL}, width, n, false, out);
}
HN_WIDE(void, sums, kinds_body,
        (const double *x, vectors v, int64_t width, int64_t n, bool apart, double *out),
        (x, v, width, n, apart, out))

void hn_features_products(const double *x, const float *v, const double *widened, int64_t width, int64_t n,
                          bool apart, double *out) {
  sums(x, (vectors){v, widened}, width, n, apart, out);
}

/* Sums of LANES classes stand beside each other, those of several samples go on at once. */
HN_WIDE_BODY void columns_of(int samples, const double *x, const hn_features_turned *c, int64_t at,
                             double *out) {
  wide sum[HN_FEATURES_AT_ONCE] = {{0}};
  for (int64_t i = 0; i < c->width; i++) {
    wide of;
    memcpy(&of, c->of + i * c->pitch + at, sizeof of);
#pragma GCC unroll 4
    for (int r = 0; r < samples; r++) sum[r] += x[r * c->width + i] * of;
  }
  for (int r = 0; r < samples; r++) memcpy(out + r * c->pitch + at, &sum[r], sizeof sum[r]);
}

HN_WIDE_BODY void columns_body(int64_t samples, const double *x, const hn_features_turned *c, double *out) {
  for (int64_t at = 0; at < c->pitch; at += LANES)
    if (samples == HN_FEATURES_AT_ONCE)
      columns_of(HN_FEATURES_AT_ONCE, x, c, at, out);
    else
      for (int64_t r = 0; r < samples; r++) columns_of(1, x + r * c->width, c, at, out + r * c->pitch);
}
HN_WIDE(void, columns, columns_body,
        (int64_t samples, const double *x, const hn_features_turned *c, double *out), (samples, x, c, out))

hone_status hn_features_turn(hone_call *call, const float *v, int64_t width, int64_t n,
                             hn_features_turned *out, hone_error *error) {
  const int64_t pitch = n == 1 ? 1 : hn_fill_up(n, LANES);
  double *of = hn_scratch(call, width * pitch, sizeof *of, error);
  if (!of) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < width; i++)
    for (int64_t k = 0; k < pitch; k++) of[i * pitch + k] = k < n ? (double)v[k * width + i] : 0;
  *out = (hn_features_turned){of, v, width, pitch};
  return HONE_OK;
}

void hn_features_sums(const hn_features_turned *c, const double *x, int64_t samples, double *out) {
  if (c->pitch > 1)
    columns(samples, x, c, out);
  else
    for (int64_t r = 0; r < samples; r++) out[r] = hn_features_product(x + r * c->width, c->v, c->width);
}
