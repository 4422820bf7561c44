/* Whether some times are shorter than others by more than noise. */
#include "base/quantile.h"
#include "improve/tune.h"

#include <math.h>
#include <string.h>

void hn_trial_summarise(hn_trial *t, const double *times) {
  double sorted[HONE_TUNE_ROUNDS];
  memcpy(sorted, times, t->samples * sizeof *sorted);
  hn_ascend(sorted, t->samples);
  t->median = hn_median(sorted, t->samples);
  t->spread = 1.57 * (hn_quantile(sorted, t->samples, 0.75) - hn_quantile(sorted, t->samples, 0.25)) /
              sqrt((double)t->samples);
}

bool hn_trial_beats(const hn_trial *a, const hn_trial *b) {
  const double gain = b->median - a->median;
  return gain > a->spread + b->spread && gain > HN_TUNE_MARGIN * b->median;
}

bool hone_times_slower(const double *before, const double *after, uint32_t n) {
  hn_trial old = {.samples = n}, now = {.samples = n};
  if (!before || !after || !n || n > HONE_TUNE_ROUNDS) return false;
  hn_trial_summarise(&old, before);
  hn_trial_summarise(&now, after);
  return hn_trial_beats(&old, &now);
}
