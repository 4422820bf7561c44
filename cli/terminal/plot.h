/* Curves on a terminal. */
#ifndef HONE_CLI_PLOT_H
#define HONE_CLI_PLOT_H

#include <stddef.h>

/* Draws n values from left to right as wide as the terminal, with a scale, and names the first and the last
 * below. Values that are not finite leave gaps. More values than columns: each column shows its median. */
void cli_plot(const double *y, size_t n, const char *first, const char *last);

#endif
