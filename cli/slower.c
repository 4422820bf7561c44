/* Whether some times are longer than others by more than noise: the intervals of their medians do not meet,
 * and the difference is more than the margin that choices of tactics have to win by as well. */
#include "cli/tuning.h"

#include <math.h>

#define MARGIN 0.02
/* Half the width of a median's 95 % interval, in quartile ranges over the root of n. */
#define INTERVAL 1.57

bool cli_slower(const double *before, const double *after, uint32_t n) {
  hone_sample_stats was, is;
  if (!n || !hone_stats_compute(before, n, &was) || !hone_stats_compute(after, n, &is)) return false;
  const double around_was = INTERVAL * (was.p75 - was.p25) / sqrt(n),
               around_is = INTERVAL * (is.p75 - is.p25) / sqrt(n);
  return is.p50 > (1 + MARGIN) * was.p50 && is.p50 - around_is > was.p50 + around_was;
}
