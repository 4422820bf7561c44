/* Mean and population variance in two passes of double, for the normalisation operators. */
#ifndef HN_MODEL_OPS_MOMENTS_H
#define HN_MODEL_OPS_MOMENTS_H

#include <stdint.h>

static inline double hn_mean(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return n > 0 ? sum / (double)n : 0;
}

/* mean of (x - mean)^2 */
static inline double hn_variance(const double *x, int64_t n, double mean) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
  return n > 0 ? sum / (double)n : 0;
}

#endif
