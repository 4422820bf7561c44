/* Products of samples with many vectors. */
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

/* The sums of the lanes of eight vectors, each added in halves. */
HN_WIDE_BODY void sums_of_lanes(const wide *v, double *out) {
  wide four[SEVERAL / 2], two[SEVERAL / 4];
#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#pragma GCC unroll 4
  for (int i = 0; i < SEVERAL / 2; i++)
    four[i] = PAIR(v[2 * i], v[2 * i + 1], 0, 1, 2, 3, 8, 9, 10, 11) +
              PAIR(v[2 * i], v[2 * i + 1], 4, 5, 6, 7, 12, 13, 14, 15);
#pragma GCC unroll 2
  for (int i = 0; i < SEVERAL / 4; i++)
    two[i] = PAIR(four[2 * i], four[2 * i + 1], 0, 1, 4, 5, 8, 9, 12, 13) +
             PAIR(four[2 * i], four[2 * i + 1], 2, 3, 6, 7, 10, 11, 14, 15);
  const wide all =
      PAIR(two[0], two[1], 0, 2, 4, 6, 8, 10, 12, 14) + PAIR(two[0], two[1], 1, 3, 5, 7, 9, 11, 13, 15);
  memcpy(out, &all, sizeof all);
#undef PAIR
}

/* The products of some samples with `several` vectors from number k on, or the squares of their distances:
 * eight sums at most go on at once, because each addition waits for the one before it. Each sum is that of
 * hn_features_product, to the bit. out: [samples][n]. */
HN_WIDE_BODY void sums_of(const double *x, int samples, vectors v, int64_t k, int several, int64_t width,
                          int64_t n, bool apart, double *out) {
  wide sum[SEVERAL] = {{0}};
  int64_t i = 0;
  for (; i + LANES <= width; i += LANES) {
    wide with[HN_FEATURES_AT_ONCE];
#pragma GCC unroll 4
    for (int r = 0; r < samples; r++) memcpy(&with[r], x + r * width + i, sizeof *with);
#pragma GCC unroll 8
    for (int j = 0; j < several; j++) {
      wide of;
      eight(v, (k + j) * width + i, &of);
#pragma GCC unroll 4
      for (int r = 0; r < samples; r++) {
        const wide d = with[r] - of;
        sum[r * several + j] += apart ? d * d : with[r] * of;
      }
    }
  }
  double all[SEVERAL];
  sums_of_lanes(sum, all);
  for (int r = 0; r < samples; r++)
    for (int j = 0; j < several; j++) {
      double rest = 0;
      for (int64_t c = i; c < width; c++) {
        const double of = one(v, (k + j) * width + c), with = x[r * width + c];
        rest += apart ? (with - of) * (with - of) : with * of;
      }
      out[r * n + k + j] = rest + all[r * several + j];
    }
}

/* Vectors come from beyond L1: four samples share what is read of them. */
HN_WIDE_BODY void sums_body(const double *x, int samples, vectors v, int64_t width, int64_t n, bool apart,
                            double *out) {
  enum { SHARED = SEVERAL / HN_FEATURES_AT_ONCE };
  int64_t k = 0;
  if (samples == HN_FEATURES_AT_ONCE)
    for (; k + SHARED <= n; k += SHARED) sums_of(x, HN_FEATURES_AT_ONCE, v, k, SHARED, width, n, apart, out);
  for (int r = 0; r < samples; r++) {
    int64_t at = k;
    for (; at + SEVERAL <= n; at += SEVERAL)
      sums_of(x + r * width, 1, v, at, SEVERAL, width, n, apart, out + r * n);
    for (; at < n; at++) sums_of(x + r * width, 1, v, at, 1, width, n, apart, out + r * n);
  }
}

HN_WIDE_BODY void kinds_body(const double *x, int samples, vectors v, int64_t width, int64_t n, bool apart,
                             double *out) {
  if (v.f64 && apart)
    sums_body(x, samples, (vectors){NULL, v.f64}, width, n, true, out);
  else if (v.f64)
    sums_body(x, samples, (vectors){NULL, v.f64}, width, n, false, out);
  else if (apart)
    sums_body(x, samples, (vectors){v.f32, NULL}, width, n, true, out);
  else
    sums_body(x, samples, (vectors){v.f32, NULL}, width, n, false, out);
}
HN_WIDE(void, sums, kinds_body,
        (const double *x, int samples, vectors v, int64_t width, int64_t n, bool apart, double *out),
        (x, samples, v, width, n, apart, out))

void hn_features_products(int64_t samples, const double *x, const float *v, const double *widened,
                          int64_t width, int64_t n, bool apart, double *out) {
  sums(x, (int)samples, (vectors){v, widened}, width, n, apart, out);
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
