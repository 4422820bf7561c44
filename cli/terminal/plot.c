#include "cli/terminal/plot.h"

#include "cli/terminal/median.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <string.h>

enum { HEIGHT = 10, SCALE = 12, WIDEST = 200 };

/* Values into columns; returns how many there are. */
static int squeeze(const double *y, size_t n, double *column, int width) {
  if (n <= (size_t)width) {
    memcpy(column, y, n * sizeof *y);
    return (int)n;
  }
  for (int c = 0; c < width; c++) {
    size_t from = n * (size_t)c / (size_t)width, to = n * (size_t)(c + 1) / (size_t)width;
    column[c] = cli_median(y + from, to - from);
  }
  return width;
}

void cli_plot(const double *y, size_t n, const char *first, const char *last) {
  double column[WIDEST], low = INFINITY, high = -INFINITY;
  int width = cli_columns() - SCALE - 2;
  width = squeeze(y, n, column, width > WIDEST ? WIDEST : width < 10 ? 10 : width);
  for (int c = 0; c < width; c++)
    if (isfinite(column[c])) low = fmin(low, column[c]), high = fmax(high, column[c]);
  if (!(high >= low)) {
    cli_print("  nothing to draw\n");
    return;
  }
  if (high - low < 0.02 * high) { /* noise is not to look like mountains */
    double mid = (high + low) / 2;
    low = mid * 0.99, high = mid * 1.01;
  }
  int gap = width > 1 ? (cli_columns() - SCALE - 2) / width - 1 : 0; /* few values: further apart */
  gap = gap > 5 ? 5 : gap < 0 ? 0 : gap;
  const char *dot = cli_unicode() ? "\xe2\x97\x8f" : "*", *bar = cli_unicode() ? "\xe2\x94\x82" : "|";
  for (int row = HEIGHT - 1; row >= 0; row--) {
    if (row == HEIGHT - 1 || row == 0 || row == HEIGHT / 2)
      cli_print("%*.4g %s", SCALE - 1, low + (high - low) * row / (HEIGHT - 1), bar);
    else
      cli_print("%*s %s", SCALE - 1, "", bar);
    int end = width;
    while (end > 0 && !(isfinite(column[end - 1]) &&
                        (int)lround((column[end - 1] - low) / (high - low) * (HEIGHT - 1)) == row))
      end--;
    for (int c = 0; c < end; c++) {
      bool here = isfinite(column[c]) && (int)lround((column[c] - low) / (high - low) * (HEIGHT - 1)) == row;
      cli_print("%*s%s", c ? gap : 0, "", here ? dot : " ");
    }
    cli_print("\n");
  }
  cli_print("%*s %s%s%s\n", SCALE - 1, "", first, n > 1 ? " ... " : "", n > 1 ? last : "");
}
