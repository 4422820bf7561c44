/* Time, and what the process has taken of the machine so far. */
#include "cli/terminal/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double cli_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Not getrusage: its maximum survives exec and may be that of the shell or script that started us. */
double cli_rss_peak_bytes(void) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  double kib = 0;
  while (f && kib == 0 && fgets(line, sizeof line, f))
    if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
  if (f) fclose(f);
  return kib * 1024;
}

double cli_remaining(double start_ms, double max_seconds) {
  return max_seconds > 0 ? max_seconds - (cli_now_ms() - start_ms) / 1e3 : 1e9;
}
