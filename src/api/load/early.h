/* Early stopping: whether so few queries say enough about a percentile.
 *
 * If just a share p of all queries were in time, of h + t queries t or fewer would be late with the
 * probability
 *
 *   odds(h, t) = sum for k = 0 .. t of C(h + t, k) (1 - p)^k p^(h + t - k)
 *
 * Where that is under 1 %, more than p are in time with 99 % confidence. So t late queries want h in time, h
 * the least with odds(h, t) < 0.01; and of n queries the t-th slowest, t the most with h + t <= n, is an
 * estimate of percentile p that is not too low. */
#ifndef HN_API_LOAD_EARLY_H
#define HN_API_LOAD_EARLY_H

#include <stdint.h>

double hn_early_odds(uint64_t h, uint64_t t, double p);
/* The least h for t late ones. */
uint64_t hn_early_in_time(uint64_t t, double p);
/* The most t that n queries allow; 0: fewer than h + 1 for t = 1. */
uint64_t hn_early_late(uint64_t n, double p);

#endif
