#include "api/load/early.h"

#include <math.h>
#include <stdbool.h>

static const double doubt = 1 - 0.99;

double hn_early_odds(uint64_t h, uint64_t t, double p) {
  const double n = (double)h + (double)t, k = (double)t;
  /* From the last term down; below the mean of a binomial each is smaller than the one before. */
  double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(1 - p) + (n - k) * log(p));
  double sum = 0;
  for (uint64_t i = t;; i--) {
    sum += term;
    if (i == 0 || term < sum * 1e-17) return sum;
    term *= (double)i * p / ((n - (double)i + 1) * (1 - p));
  }
}

/* With as many late ones as the mean or more, the odds are about a half, or more. */
static bool enough(uint64_t h, uint64_t t, double p) {
  return (double)h * (1 - p) > (double)t * p && hn_early_odds(h, t, p) < doubt;
}

uint64_t hn_early_in_time(uint64_t t, double p) {
  uint64_t low = (uint64_t)((double)t * p / (1 - p)), high = low + 1;
  while (!enough(high, t, p)) {
    low = high;
    high += high;
  }
  while (high - low > 1) {
    const uint64_t h = low + (high - low) / 2;
    *(enough(h, t, p) ? &high : &low) = h;
  }
  return high;
}

uint64_t hn_early_late(uint64_t n, double p) {
  if (n < 2 || !enough(n - 1, 1, p)) return 0;
  uint64_t low = 1, high = n;
  while (high - low > 1) {
    const uint64_t t = low + (high - low) / 2;
    *(enough(n - t, t, p) ? &low : &high) = t;
  }
  return low;
}
