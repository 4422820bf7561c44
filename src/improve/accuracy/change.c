/* Is the difference between two models more than luck? McNemar's test on the samples they disagree on. */
#include "base/error.h"

#include <hone/eval.h>
#include <math.h>

/* P(K <= k) of n fair coins. */
static double coins(uint64_t n, uint64_t k) {
  double sum = 0;
  for (uint64_t i = 0; i <= k; i++)
    sum +=
        exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) - (double)n * log(2));
  return sum;
}

hone_status hone_eval_compare(const hone_eval_result *a, const hone_eval_result *b, hone_eval_change *out,
                              hone_error *error) {
  if (!a || !b || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_compare: a, b and out may not be NULL");
  *out = (hone_eval_change){0};
  if (a->truth != HONE_TRUTH_CLASS || b->truth != HONE_TRUTH_CLASS || a->n_outcomes != b->n_outcomes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_eval_compare wants two results of one set with classes");
  uint64_t right_a = 0, right_b = 0;
  for (uint64_t i = 0; i < a->n_outcomes; i++) {
    if (!a->outcomes[i] || !b->outcomes[i]) continue;
    const bool x = a->outcomes[i] == HONE_OUTCOME_RIGHT, y = b->outcomes[i] == HONE_OUTCOME_RIGHT;
    out->samples++;
    right_a += x, right_b += y;
    out->only_a += x && !y;
    out->only_b += y && !x;
  }
  const double n = out->samples ? (double)out->samples : (double)NAN;
  const uint64_t less = out->only_a < out->only_b ? out->only_a : out->only_b;
  out->top1_a = (double)right_a / n;
  out->top1_b = (double)right_b / n;
  out->p = fmin(1, 2 * coins(out->only_a + out->only_b, less));
  out->real = out->p < 0.05;
  return HONE_OK;
}
