#include "cli/terminal/median.h"

#include <hone/hone.h>
#include <math.h>
#include <stdlib.h>

double cli_median(const double *values, size_t n) {
  double *known = malloc((n + 1) * sizeof *known);
  hone_sample_stats stats;
  size_t m = 0;
  for (size_t i = 0; known && i < n; i++)
    if (isfinite(values[i])) known[m++] = values[i];
  const bool found = m && hone_stats_compute(known, m, &stats);
  free(known);
  return found ? stats.p50 : (double)NAN;
}
