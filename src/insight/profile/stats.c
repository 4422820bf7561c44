#include <hone/insight.h>

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *pa, const void *pb) {
  double a = *(const double *)pa, b = *(const double *)pb;
  return a < b ? -1 : a > b;
}

/* Quantile q of sorted samples: linear between the neighbours of position q * (n - 1). */
static double quantile(const double *sorted, size_t n, double q) {
  double position = q * (double)(n - 1);
  size_t i = (size_t)position;
  if (i + 1 >= n) return sorted[n - 1];
  return sorted[i] + (position - (double)i) * (sorted[i + 1] - sorted[i]);
}

bool hone_stats_compute(const double *samples, size_t count, hone_sample_stats *stats) {
  if ((count && !samples) || !stats) return false;
  *stats = (hone_sample_stats){0};
  if (!count) return true;
  double *sorted = hn_malloc(count * sizeof *sorted);
  if (!sorted) return false;
  memcpy(sorted, samples, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_value);
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += sorted[i];
  stats->count = count;
  stats->mean = sum / (double)count;
  stats->min = sorted[0];
  stats->max = sorted[count - 1];
  stats->p50 = quantile(sorted, count, 0.5);
  stats->p95 = quantile(sorted, count, 0.95);
  if (count > 1) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += (sorted[i] - stats->mean) * (sorted[i] - stats->mean);
    stats->stddev = sqrt(squares / (double)(count - 1));
    stats->cv = stats->mean != 0 ? stats->stddev / stats->mean : 0;
  }
  hn_free(sorted);
  return true;
}
