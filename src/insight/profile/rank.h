/* Tests of whether two sets of samples come from the same place. */
#ifndef HN_INSIGHT_RANK_H
#define HN_INSIGHT_RANK_H

#include <hone/insight.h>

/* Two-sided p value of the Mann-Whitney U test (normal approximation with correction for ties and
 * continuity); needs five samples on each side, else negative. Also negative when out of memory. */
double hn_rank_test(const double *a, size_t na, const double *b, size_t nb);

/* The same for two to four samples on one side, by counting orders; negative otherwise, and where not even
 * the rarest order is rarer than alpha. */
double hn_rank_test_exact(const double *a, size_t na, const double *b, size_t nb, double alpha);

/* Two-sided p value of Welch's t test from counts, means and deviations alone; negative when either side has
 * fewer than two samples or nothing scatters. */
double hn_welch_test(const hone_sample_stats *a, const hone_sample_stats *b);

#endif
