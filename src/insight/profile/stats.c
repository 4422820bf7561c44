#include <hone/insight.h>

#include "base/mem.h"
#include "base/quantile.h"

#include <math.h>
#include <string.h>

bool hone_stats_compute(const double *samples, size_t count, hone_sample_stats *stats) {
  if ((count && !samples) || !stats) return false;
  *stats = (hone_sample_stats){0};
  if (!count) return true;
  double *sorted = hn_malloc(count * sizeof *sorted);
  if (!sorted) return false;
  memcpy(sorted, samples, count * sizeof *sorted);
  hn_ascend(sorted, count);
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += sorted[i];
  stats->count = count;
  stats->mean = sum / (double)count;
  stats->min = sorted[0];
  stats->max = sorted[count - 1];
  stats->p25 = hn_quantile(sorted, count, 0.25);
  stats->p50 = hn_median(sorted, count);
  stats->p75 = hn_quantile(sorted, count, 0.75);
  stats->p95 = hn_quantile(sorted, count, 0.95);
  if (count > 1) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += (sorted[i] - stats->mean) * (sorted[i] - stats->mean);
    stats->stddev = sqrt(squares / (double)(count - 1));
    stats->cv = stats->mean != 0 ? stats->stddev / stats->mean : 0;
  }
  hn_free(sorted);
  return true;
}
