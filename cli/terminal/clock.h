/* Time, and what the process has taken of the machine so far. */
#ifndef HONE_CLI_CLOCK_H
#define HONE_CLI_CLOCK_H

#include <hone/hone.h>

double cli_now_ms(void);
double cli_rss_peak_bytes(void);
double cli_remaining(double start_ms, double max_seconds); /* seconds; a huge number when there is no limit */

#endif
