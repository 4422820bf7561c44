#include "base/quantile.h"

#include <stdlib.h>

static int ascending(const void *pa, const void *pb) {
  const double a = *(const double *)pa, b = *(const double *)pb;
  return (a > b) - (a < b);
}

void hn_ascend(double *values, size_t n) {
  if (n) qsort(values, n, sizeof *values, ascending);
}

double hn_quantile(const double *sorted, size_t n, double q) {
  const double position = q * (double)(n - 1);
  const size_t i = (size_t)position;
  if (i + 1 >= n) return sorted[n - 1];
  return sorted[i] + (position - (double)i) * (sorted[i + 1] - sorted[i]);
}

double hn_median(const double *sorted, size_t n) { return hn_quantile(sorted, n, 0.5); }
