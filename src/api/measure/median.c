#include "api/measure/median.h"

#include "base/mem.h"
#include "base/quantile.h"

#include <math.h>

double hn_median_of(const double *values, size_t n) {
  double *finite = hn_malloc((n + 1) * sizeof *finite), median = (double)NAN;
  size_t known = 0;
  for (size_t i = 0; finite && i < n; i++)
    if (isfinite(values[i])) finite[known++] = values[i];
  if (known) {
    hn_ascend(finite, known);
    median = hn_median(finite, known);
  }
  hn_free(finite);
  return median;
}
