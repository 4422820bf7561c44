#include "cli/options/times.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool cli_nanoseconds(const char *text, uint64_t *ns) {
  static const struct {
    const char *unit;
    double ns;
  } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}};
  char *end;
  const double v = strtod(text, &end);
  if (end == text || !isfinite(v) || v < 0) return false;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].unit) == 0 && v * units[i].ns <= 1e16) {
      *ns = (uint64_t)(v * units[i].ns + 0.5);
      return true;
    }
  return false;
}
