/* Medians and other quantiles. */
#ifndef HN_BASE_QUANTILE_H
#define HN_BASE_QUANTILE_H

#include <stddef.h>

/* Sorts, the smallest first. */
void hn_ascend(double *values, size_t n);

/* Quantile q of n > 0 sorted values: linear between the neighbours of position q * (n - 1). */
double hn_quantile(const double *sorted, size_t n, double q);

/* The middle one of n > 0 sorted values, or the mean of the two in the middle. */
double hn_median(const double *sorted, size_t n);

#endif
