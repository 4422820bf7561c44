/* Does a value move over time, and what came with the slow runs? */
#include <hone/history.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/quantile.h"

#include <math.h>
#include <stdio.h>

enum { FEWEST = 8, MOST = 2000 };
#define ODD_ONE 1.5 /* times the median */

static double middle(double *v, size_t n) {
  hn_ascend(v, n);
  return hn_median(v, n);
}

/* How alike neighbours are after the line is taken away. */
static double likeness(const double *t, const double *v, size_t n, double slope, double *rest) {
  double sum = 0, squares = 0, products = 0;
  for (size_t i = 0; i < n; i++) sum += rest[i] = v[i] - slope * (t[i] - t[0]);
  for (size_t i = 0; i < n; i++) {
    rest[i] -= sum / (double)n;
    squares += rest[i] * rest[i];
    if (i) products += rest[i] * rest[i - 1];
  }
  return squares > 0 ? fmin(0.9, fmax(0, products / squares)) : 0;
}

static void fit(const double *t, const double *v, size_t n, double *slopes, double *spare, hone_drift *out) {
  size_t k = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n; j++)
      if (t[j] > t[i]) slopes[k++] = (v[j] - v[i]) / (t[j] - t[i]);
  out->n = n;
  for (size_t i = 0; i < n; i++) spare[i] = v[i];
  out->level = middle(spare, n);
  if (!k) return;
  out->slope = middle(slopes, k);
  out->likeness = likeness(t, v, n, out->slope, spare);
  double m = (double)n, alike = (1 + out->likeness) / (1 - out->likeness);
  double width = 1.96 * sqrt(m * (m - 1) * (2 * m + 5) / 18 * alike), cut = ((double)k - width) / 2;
  size_t low = cut > 0 ? (size_t)cut : 0;
  out->low = slopes[low];
  out->high = slopes[k - 1 - low];
  out->change = out->slope * (t[n - 1] - t[0]);
  out->certain = out->low > 0 || out->high < 0;
}

bool hone_drift_compute(const double *times, const double *values, size_t n, hone_drift *out) {
  if ((n && !values) || !out) return false;
  *out = (hone_drift){0};
  size_t finite = 0, k = 0, seen = 0;
  for (size_t i = 0; i < n; i++) finite += isfinite(values[i]) != 0;
  if (finite < FEWEST) return true;
  size_t take = finite < MOST ? finite : MOST;
  double *t = hn_calloc(take, sizeof *t), *v = hn_calloc(take, sizeof *v),
         *spare = hn_calloc(take, sizeof *spare), *slopes = hn_calloc(take * (take - 1) / 2, sizeof *slopes);
  bool ok = t && v && spare && slopes;
  for (size_t i = 0; ok && i < n; i++)
    if (isfinite(values[i]) && seen++ * take / finite >= k && k < take) t[k] = times[i], v[k++] = values[i];
  if (ok) fit(t, v, k, slopes, spare, out);
  hn_free(t);
  hn_free(v);
  hn_free(spare);
  hn_free(slopes);
  return ok;
}

/* Fewer mapped pages than that take no time worth a word; so much below its usual is a slow clock. */
#define MANY_PAGES 64
#define SLOW_CLOCK 0.9
#define MANY_OTHERS 15.0 /* % of the processors; as threshold others_share */

HN_NAME_FUNCTION(hone_slow_cause_name, hone_slow_cause, HONE_SLOW_CAUSES)

hone_slow_cause hone_slow_run_cause(const hone_slow_run *r) {
  if (!r) return (hone_slow_cause)0;
  if (r->major_faults) return HONE_SLOW_DISK;
  if (r->involuntary_switches) return HONE_SLOW_SWITCHED;
  if (r->throttles > 0 || r->clock_mhz < SLOW_CLOCK * r->usual_clock_mhz) return HONE_SLOW_CLOCK;
  if (r->minor_faults >= MANY_PAGES) return HONE_SLOW_MAPPED;
  if (r->others_pct >= MANY_OTHERS) return HONE_SLOW_NEIGHBOURS;
  return HONE_SLOW_UNSEEN;
}

void hone_spread_explain(const double *ms, const hone_disturbance *seen, size_t n, double median, double cv,
                         char *buf, size_t size) {
  if (!buf || !size) return;
  buf[0] = 0;
  if (!ms) return;
  size_t odd = 0, switched = 0, read = 0, mapped = 0, plain_switched = 0;
  double lost = 0, total = 0;
  for (size_t i = 0; i < n; i++) {
    total += ms[i];
    if (ms[i] <= ODD_ONE * median) {
      plain_switched += seen && seen[i].involuntary_switches;
      continue;
    }
    odd++;
    lost += ms[i] - median;
    if (!seen) continue;
    switched += seen[i].involuntary_switches > 0; /* a run counts once, by its weightiest cause */
    read += !seen[i].involuntary_switches && seen[i].major_faults;
    mapped += !seen[i].involuntary_switches && !seen[i].major_faults && seen[i].minor_faults;
  }
  if (!odd) {
    if (cv > 0.15)
      snprintf(
          buf, size,
          "no run stands out: all of them scatter, as by a clock that changes or neighbours in the caches");
    return;
  }
  int k = snprintf(buf, size, "%zu of %zu runs took more than 1.5 times the median (%.1f %% of the time)",
                   odd, n, total > 0 ? 100 * lost / total : 0);
  if (!seen || k < 0 || (size_t)k >= size) return;
  /* Only what was seen: a list of zeros hides the one number that matters. */
  const struct {
    size_t runs;
    const char *what;
  } causes[] = {{read, "pages were read from disk"},
                {mapped, "pages were mapped"},
                {odd - switched - read - mapped, "no such cause was seen"}};
  k += snprintf(buf + k, size - (size_t)k,
                "; in %zu of them the system gave the processor to somebody else (in %zu of the %zu others)",
                switched, plain_switched, n - odd);
  for (size_t i = 0; i < sizeof causes / sizeof *causes && k > 0 && (size_t)k < size; i++)
    if (causes[i].runs)
      k += snprintf(buf + k, size - (size_t)k, ", in %zu %s", causes[i].runs, causes[i].what);
}
