#ifndef HN_API_MEASURE_MEDIAN_H
#define HN_API_MEASURE_MEDIAN_H

#include <stddef.h>

/* Of the finite values; NaN where there are none. */
double hn_median_of(const double *values, size_t n);

#endif
