/* Whether some times are longer than others by more than noise: the intervals of their medians do not meet,
 * and the difference is more than the margin that choices of tactics have to win by as well. */
#include "cli/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN 0.02
/* Half the width of a median's 95 % interval, in quartile ranges over the root of n. */
#define INTERVAL 1.57

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double at(const double *sorted, uint32_t n, double share) {
  const double place = share * (n - 1);
  const uint32_t low = (uint32_t)place;
  return low + 1 < n ? sorted[low] + (place - low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

static double median(const double *times, uint32_t n, double *spread) {
  double sorted[CLI_TUNE_ROUNDS];
  memcpy(sorted, times, n * sizeof *times);
  qsort(sorted, n, sizeof *sorted, by_value);
  *spread = INTERVAL * (at(sorted, n, 0.75) - at(sorted, n, 0.25)) / sqrt(n);
  return at(sorted, n, 0.5);
}

bool cli_slower(const double *before, const double *after, uint32_t n) {
  double around[2];
  if (!n || n > CLI_TUNE_ROUNDS) return false;
  const double old = median(before, n, &around[0]), new = median(after, n, &around[1]);
  return new > (1 + MARGIN) * old && (new - around[1]) > old + around[0];
}
