/* A median. */
#ifndef HONE_CLI_MEDIAN_H
#define HONE_CLI_MEDIAN_H

#include <hone/hone.h>

double cli_median(const double *values, size_t n); /* of the finite ones; NaN where there are none */

#endif
