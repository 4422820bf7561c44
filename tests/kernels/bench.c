/* What --bench prints: a line for each shape, and for each kernel its share of the roof with the reason where
 * that is low. */
#include "check_internal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"

#define LOW 70.0 /* percent of the roof: below it a reason is due */
enum { MOST = 2048 };

static const struct {
  const char *kernel, *text; /* glob */
} reasons[] = {
#define REASON(kernel, text) {kernel, text},
#include "reasons.def"
#undef REASON
    {NULL, NULL},
};

typedef struct line {
  const struct hn_kernel *kernel;
  char label[64];
  const char *roof;
  double percent, speedup;
} line;

static line lines[MOST];
static size_t n_lines;

void ck_bench_line(ck *c, const char *label, double seconds, const ck_work *w, double scalar_seconds) {
  const char *roof;
  const double percent = 100 * ck_roof_seconds(c->kernel->isa, w, &roof) / seconds;
  const double speedup = scalar_seconds > 0 ? scalar_seconds / seconds : 0;
  char text[32] = "";
  if (speedup > 0) snprintf(text, sizeof text, "%6.1fx scalar", speedup);
  printf("%-26s %-34s %10.2f us %8.1f Gop/s %7.1f GB/s  %5.1f %% of the %s roof %s\n", c->kernel->name, label,
         seconds * 1e6, (w->flops + w->instructions) / seconds * 1e-9,
         (w->read + w->written) / seconds * 1e-9, percent, roof, text);
  if (n_lines == MOST) return;
  line *l = &lines[n_lines++];
  *l = (line){.kernel = c->kernel, .roof = roof, .percent = percent, .speedup = speedup};
  snprintf(l->label, sizeof l->label, "%s", label);
}

static int by_percent(const void *a, const void *b) {
  const double x = ((const line *)a)->percent, y = ((const line *)b)->percent;
  return (x > y) - (x < y);
}

static const char *reason_of(const char *kernel) {
  for (size_t i = 0; reasons[i].kernel; i++)
    if (fnmatch(reasons[i].kernel, kernel, 0) == 0) return reasons[i].text;
  return "";
}

void ck_bench_summary(bool markdown) {
  uint32_t low = 0, silent = 0;
  if (markdown) printf("\nMeasured on %s, one thread.\n", hn_cpu_brand());
  printf(markdown ? "\n| kernel | shapes | median %% of roof | lowest | at | reason, where the median is "
                    "below %.0f %% |\n"
                    "|---|---|---|---|---|---|\n"
                  : "\nby kernel: median and lowest %% of the measured roof over its shapes; below %.0f %% "
                    "with the reason\n",
         LOW);
  for (size_t at = 0, end; at < n_lines; at = end) {
    const struct hn_kernel *k = lines[at].kernel;
    for (end = at; end < n_lines && lines[end].kernel == k;) end++;
    qsort(lines + at, end - at, sizeof *lines, by_percent);
    const double median = lines[at + (end - at) / 2].percent;
    const char *why = median < LOW ? reason_of(k->name) : "";
    low += median < LOW;
    silent += median < LOW && !*why;
    printf(markdown ? "| %s | %zu | %.0f | %.0f | %s (%s) | %s |\n"
                    : "%-26s %3zu shapes  median %5.1f %%  lowest %5.1f %% (%s, %s)  %s\n",
           k->name, end - at, median, lines[at].percent, lines[at].label, lines[at].roof,
           median < LOW && !*why ? "no reason given" : why);
  }
  if (!markdown)
    printf("%u kernels below %.0f %%, %u of them without a reason in reasons.def\n", low, LOW, silent);
}
