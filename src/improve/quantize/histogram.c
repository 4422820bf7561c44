/* Histograms that grow outwards: memory does not depend on the data, and one pass is enough. */
#include "improve/quantize/quantize.h"

#include <math.h>

/* Twice the reach: two bins become one, the middle stays in the middle. */
static void widen(hn_quantize_histogram *h) {
  enum { HALF = HN_QUANTIZE_BINS / 2, QUARTER = HN_QUANTIZE_BINS / 4 };
  for (int i = 0; i < QUARTER; i++) h->bin[HALF + i] = h->bin[HALF + 2 * i] + h->bin[HALF + 2 * i + 1];
  for (int i = 0; i < QUARTER; i++)
    h->bin[HALF - 1 - i] = h->bin[HALF - 1 - 2 * i] + h->bin[HALF - 2 - 2 * i];
  for (int i = 0; i < QUARTER; i++) h->bin[i] = h->bin[HN_QUANTIZE_BINS - 1 - i] = 0;
  h->reach *= 2;
}

static void reach_for(hn_quantize_histogram *h, double most) {
  if (most <= 0) return;
  if (h->reach == 0) {
    int e;
    const double part = frexp(most, &e);
    h->reach = ldexp(1, part == 0.5 ? e - 1 : e);
    h->bin[HN_QUANTIZE_BINS / 2] = h->zeros;
  }
  while (h->reach < most) widen(h);
}

void hn_quantize_observe(hn_quantize_histogram *h, const float *values, int64_t n) {
  float least = INFINITY, most = -INFINITY;
  uint64_t odd = 0, zeros = 0;
  for (int64_t i = 0; i < n; i++) {
    const float v = values[i];
    if (!isfinite(v)) {
      odd++;
      continue;
    }
    zeros += v == 0;
    if (v < least) least = v;
    if (v > most) most = v;
  }
  h->odd += odd;
  if (least > most) return;
  if (h->count == 0 || (double)least < h->least) h->least = (double)least;
  if (h->count == 0 || (double)most > h->most) h->most = (double)most;
  reach_for(h, fmax(fabs((double)least), fabs((double)most)));
  h->count += (uint64_t)n - odd;
  h->zeros += zeros;
  if (h->reach == 0) return;
  const double per = 0.5 * HN_QUANTIZE_BINS / h->reach;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(values[i])) continue;
    int k = (int)floor(((double)values[i] + h->reach) * per);
    h->bin[k < HN_QUANTIZE_BINS ? k : HN_QUANTIZE_BINS - 1]++;
  }
}

double hn_quantize_outside(const hn_quantize_histogram *h, double low, double high) {
  uint64_t n = 0;
  if (h->count == 0 || h->reach == 0) return 0;
  for (int i = 0; i < HN_QUANTIZE_BINS; i++)
    if (hn_quantize_edge(h, i + 1) <= low || hn_quantize_edge(h, i) >= high) n += h->bin[i];
  return (double)n / (double)h->count;
}
