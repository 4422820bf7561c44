/* Is the new one slower? Rank tests with a minimum effect, on pairs of processes, in several looks. */
#include <hone/history.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quantile.h"
#include "insight/profile/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THRESHOLD 0.05
#define FALSE_WORSE 0.005 /* of all looks together */
#define FALSE_SAME 0.02
enum { MAX_PAIRS = 60, FEWEST_IN_SET = 10, MOST_IN_SET = 2000, MOST_PAIRS = 500 };
/* Even numbers, so that every look has as many pairs of either order. */
static const uint32_t looks[] = {12, 16,  20,  24,  30,  38,  48,  60,        76,
                                 96, 120, 152, 192, 240, 304, 384, MOST_PAIRS};

HN_NAME_FUNCTION(hone_gate_verdict_name, hone_gate_verdict, HONE_GATE_VERDICTS)

/* ---- Wilcoxon's signed ranks, exact */

typedef struct ranks {
  uint32_t n, twice_sum;      /* without zeros; sum of the positive ones' doubled ranks */
  uint32_t twice[MOST_PAIRS]; /* doubled midranks of |d| */
} ranks;

typedef struct magnitude {
  double value;
  bool positive;
} magnitude;

static int by_magnitude(const void *pa, const void *pb) {
  const magnitude *a = pa, *b = pb;
  return a->value < b->value ? -1 : a->value > b->value;
}

static void rank_signed(const double *d, uint32_t n, double shift, ranks *r) {
  magnitude m[MOST_PAIRS];
  r->n = r->twice_sum = 0;
  for (uint32_t i = 0; i < n; i++)
    if (d[i] != shift) m[r->n++] = (magnitude){fabs(d[i] - shift), d[i] > shift};
  qsort(m, r->n, sizeof *m, by_magnitude);
  for (uint32_t i = 0, end; i < r->n; i = end) {
    for (end = i + 1; end < r->n && m[end].value == m[i].value; end++) {
    }
    for (uint32_t k = i; k < end; k++) {
      r->twice[k] = i + 1 + end;
      if (m[k].positive) r->twice_sum += i + 1 + end;
    }
  }
}

/* P(sum of positive ranks >= what was seen) when every sign is a fair coin; ties as they are. ways[s]: chance
 * of the doubled sum s. */
static double upper_tail(const ranks *r, double *ways) {
  uint32_t most = 0;
  double tail = 0;
  ways[0] = 1;
  for (uint32_t i = 0; i < r->n; i++) {
    uint32_t rank = r->twice[i];
    memset(ways + most + 1, 0, rank * sizeof *ways);
    most += rank;
    for (uint32_t s = most + 1; s-- > 0;) ways[s] = 0.5 * (ways[s] + (s >= rank ? ways[s - rank] : 0));
  }
  for (uint32_t s = r->twice_sum; s <= most; s++) tail += ways[s];
  return r->n ? fmin(1, tail) : 1;
}

/* One-sided p of "not above shift" (sign 1) or "not below shift" (sign -1). */
static double signed_rank(const double *d, uint32_t n, double shift, int sign, double *ways, double *turned) {
  ranks r;
  for (uint32_t i = 0; i < n; i++) turned[i] = sign * d[i];
  rank_signed(turned, n, sign * shift, &r);
  return upper_tail(&r, ways);
}

/* ---- looks */

typedef struct work {
  double *d, *walsh, *ways, *turned, *sorted;
} work;

static void work_free(work *w) {
  hn_free(w->d);
  hn_free(w->walsh);
  hn_free(w->ways);
  hn_free(w->turned);
  hn_free(w->sorted);
}

static bool work_make(work *w, uint32_t n) {
  *w = (work){hn_calloc(n + 1, sizeof(double)), hn_calloc((size_t)n * (n + 1) / 2 + 1, sizeof(double)),
              hn_calloc((size_t)n * (n + 1) + 2, sizeof(double)), hn_calloc(n + 1, sizeof(double)),
              hn_calloc(n + 1, sizeof(double))};
  return w->d && w->walsh && w->ways && w->turned && w->sorted;
}

static double median_of(const double *v, uint32_t n, double *sorted) {
  memcpy(sorted, v, n * sizeof *v);
  hn_ascend(sorted, n);
  return hn_median(sorted, n);
}

/* Median absolute deviation as a standard deviation of the normal distribution. */
static double spread(const double *d, uint32_t n, double centre, double *sorted) {
  for (uint32_t i = 0; i < n; i++) sorted[i] = fabs(d[i] - centre);
  hn_ascend(sorted, n);
  return 1.4826 * hn_median(sorted, n);
}

/* Estimate and interval from the sorted averages (or differences); margin: how many to leave out at either
 * end. */
static void estimate(double *values, size_t n, double margin, hone_gate_result *out) {
  hn_ascend(values, n);
  size_t cut = margin > 1 ? (size_t)(margin - 1) : 0;
  if (cut > (n - 1) / 2) cut = (n - 1) / 2;
  out->change = expm1(hn_median(values, n));
  out->low = expm1(values[cut]);
  out->high = expm1(values[n - 1 - cut]);
}

static double share(double of, uint32_t n_looks) { return of / n_looks; }

/* What the figures say at one look, of which there are n_looks. */
static void judge(double threshold, uint32_t n_looks, double p_faster, hone_gate_result *out) {
  double cut = threshold / 2, change = out->change;
  bool slower = out->p_slower <= share(FALSE_WORSE, n_looks),
       within = out->p_threshold <= share(FALSE_SAME, n_looks);
  out->verdict = HONE_GATE_NONE;
  if (slower && change > cut) out->verdict = HONE_GATE_WORSE;
  if (within && change <= cut) out->verdict = HONE_GATE_SAME;
  if (within && change < -cut && p_faster <= share(FALSE_WORSE, n_looks)) out->verdict = HONE_GATE_BETTER;
  out->decided = out->verdict != HONE_GATE_NONE;
}

static void explain(double threshold, hone_gate_result *out) {
  const char *unit = out->paired ? "pairs" : "processes on the smaller side";
  if (out->verdict == HONE_GATE_WORSE)
    snprintf(out->reason, sizeof out->reason,
             "slower by %.1f %% (95 %%: %+.1f to %+.1f) over %u %s; more than half of %.3g %%, and not by "
             "chance (p %.2g)",
             100 * out->change, 100 * out->low, 100 * out->high, out->pairs, unit, 100 * threshold,
             out->p_slower);
  else if (out->verdict != HONE_GATE_NONE)
    snprintf(out->reason, sizeof out->reason,
             "%+.1f %% (95 %%: %+.1f to %+.1f) over %u %s; a slowdown of %.3g %% is ruled out (p %.2g)",
             100 * out->change, 100 * out->low, 100 * out->high, out->pairs, unit, 100 * threshold,
             out->p_threshold);
  else if (out->paired && out->pairs < looks[0])
    snprintf(out->reason, sizeof out->reason, "%u pairs: nothing is decided with fewer than %u", out->pairs,
             looks[0]);
  else
    snprintf(out->reason, sizeof out->reason,
             "too noisy to tell 0 from %.3g %% in %u %s: %+.1f %% (95 %%: %+.1f to %+.1f), one process "
             "scatters by %.1f %%",
             100 * threshold, out->pairs, unit, 100 * out->change, 100 * out->low, 100 * out->high,
             100 * out->noise);
}

/* The figures of the first n pairs; p of "not faster" comes back. */
static double measure_pairs(const double *baseline, const double *candidate, uint32_t n, double threshold,
                            work *w, hone_gate_result *out) {
  size_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i; j < n; j++) w->walsh[k++] = (w->d[i] + w->d[j]) / 2;
  double mean = n * (n + 1) / 4.0, deviation = sqrt(n * (n + 1.0) * (2 * n + 1) / 24);
  estimate(w->walsh, k, mean - 1.96 * deviation, out);
  out->pairs = n;
  out->baseline_ms = median_of(baseline, n, w->sorted);
  out->candidate_ms = median_of(candidate, n, w->sorted);
  out->noise = spread(w->d, n, median_of(w->d, n, w->sorted), w->turned) / sqrt(2);
  out->p_slower = signed_rank(w->d, n, 0, 1, w->ways, w->turned);
  out->p_threshold = signed_rank(w->d, n, log1p(threshold), -1, w->ways, w->turned);
  return signed_rank(w->d, n, 0, -1, w->ways, w->turned);
}

static hone_status check_times(const double *v, uint32_t n, hone_error *error) {
  for (uint32_t i = 0; i < n; i++)
    if (!(v[i] > 0) || !isfinite(v[i]))
      return hn_fail(error, HONE_ERROR_USAGE, "time %u of %u is not above 0: %g", i + 1, n, v[i]);
  return HONE_OK;
}

static hone_status read_options(const hone_gate_options *o, double *threshold, uint32_t *most,
                                hone_error *error) {
  *threshold = o && o->threshold != 0 ? o->threshold : THRESHOLD;
  *most = o && o->max_pairs ? o->max_pairs : MAX_PAIRS;
  if (!(*threshold > 0) || *threshold > 10)
    return hn_fail(error, HONE_ERROR_USAGE, "a threshold lies above 0 and is at most 1000 %%, not %g %%",
                   100 * *threshold);
  if (*most < looks[0] || *most > MOST_PAIRS)
    return hn_fail(error, HONE_ERROR_USAGE, "a gate takes %u to %u pairs, not %u", looks[0],
                   (unsigned)MOST_PAIRS, *most);
  return HONE_OK;
}

hone_status hone_gate_pairs(const double *baseline, const double *candidate, uint32_t n,
                            const hone_gate_options *options, hone_gate_result *out, hone_error *error) {
  if (!out || (n && (!baseline || !candidate)))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_gate_pairs: baseline, candidate and out may not be NULL");
  double threshold;
  uint32_t most, n_looks = 0;
  work w = {0};
  *out = (hone_gate_result){.verdict = HONE_GATE_NONE, .paired = true, .p_slower = 1, .p_threshold = 1};
  hone_status status = read_options(options, &threshold, &most, error);
  if (status == HONE_OK) status = check_times(baseline, n, error);
  if (status == HONE_OK) status = check_times(candidate, n, error);
  if (status != HONE_OK) return status;
  if (n > most) n = most;
  while (looks[n_looks] < most) n_looks++;
  n_looks++; /* the last one is at `most` */
  if (!work_make(&w, n)) {
    work_free(&w);
    return hn_fail_memory(error, (unsigned long long)n * n * 12, "the gate");
  }
  for (uint32_t i = 0; i < n; i++) w.d[i] = log(candidate[i] / baseline[i]);
  for (uint32_t k = 0; k < n_looks && !out->decided; k++) {
    uint32_t at = k + 1 < n_looks ? looks[k] : most;
    out->look = at;
    if (at > n) break;
    double p_faster = measure_pairs(baseline, candidate, at, threshold, &w, out);
    judge(threshold, n_looks, p_faster, out);
    if (at == most) out->decided = true;
  }
  if (out->decided)
    out->look = 0;
  else if (n) /* between looks: figures to show, no verdict */
    measure_pairs(baseline, candidate, n, threshold, &w, out);
  work_free(&w);
  explain(threshold, out);
  return HONE_OK;
}

/* One-sided p of "b * factor is not above a" (sign 1) or "not below" (sign -1), from the two-sided test. */
static double set_test(const double *a, uint32_t na, const double *b, uint32_t nb, double factor, int sign,
                       double *scaled, double location) {
  for (uint32_t i = 0; i < nb; i++) scaled[i] = b[i] / factor;
  double p = hn_rank_test(a, na, scaled, nb) / 2;
  return sign * (location - log(factor)) > 0 ? p : 1 - p;
}

hone_status hone_gate_sets(const double *baseline, uint32_t na, const double *candidate, uint32_t nb,
                           const hone_gate_options *options, hone_gate_result *out, hone_error *error) {
  if (!out || (na && !baseline) || (nb && !candidate))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_gate_sets: baseline, candidate and out may not be NULL");
  double threshold;
  uint32_t most;
  *out = (hone_gate_result){.verdict = HONE_GATE_NONE,
                            .decided = true,
                            .p_slower = 1,
                            .p_threshold = 1,
                            .pairs = na < nb ? na : nb};
  hone_status status = read_options(options, &threshold, &most, error);
  if (status == HONE_OK) status = check_times(baseline, na, error);
  if (status == HONE_OK) status = check_times(candidate, nb, error);
  if (status != HONE_OK) return status;
  if (!na || !nb) return hn_fail(error, HONE_ERROR_USAGE, "a gate needs times of both sides");
  if (na > MOST_IN_SET || nb > MOST_IN_SET)
    return hn_fail(error, HONE_ERROR_USAGE, "a gate takes at most %u processes a side",
                   (unsigned)MOST_IN_SET);
  uint32_t larger = na > nb ? na : nb;
  double *shift = hn_calloc((size_t)na * nb, sizeof *shift), *some = hn_calloc(larger, sizeof *some),
         *more = hn_calloc(larger, sizeof *more);
  if (!shift || !some || !more) {
    status = hn_fail_memory(error, (unsigned long long)na * nb * 8, "the gate");
    goto done;
  }
  for (uint32_t i = 0; i < na; i++)
    for (uint32_t k = 0; k < nb; k++) shift[(size_t)i * nb + k] = log(candidate[k] / baseline[i]);
  double pairs = (double)na * nb;
  estimate(shift, (size_t)na * nb, pairs / 2 - 1.96 * sqrt(pairs * (na + nb + 1.0) / 12), out);
  out->baseline_ms = median_of(baseline, na, some);
  out->candidate_ms = median_of(candidate, nb, some);
  out->noise = fmax(spread(baseline, na, out->baseline_ms, some) / out->baseline_ms,
                    spread(candidate, nb, out->candidate_ms, more) / out->candidate_ms);
  if (na < FEWEST_IN_SET || nb < FEWEST_IN_SET) {
    snprintf(out->reason, sizeof out->reason,
             "%u and %u processes: fewer than %u a side say nothing about how processes differ", na, nb,
             (unsigned)FEWEST_IN_SET);
    goto done;
  }
  double location = log1p(out->change);
  out->p_slower = set_test(baseline, na, candidate, nb, 1, 1, some, location);
  out->p_threshold = set_test(baseline, na, candidate, nb, 1 + threshold, -1, some, location);
  judge(threshold, 1, set_test(baseline, na, candidate, nb, 1, -1, some, location), out);
  out->decided = true;
  explain(threshold, out);
done:
  hn_free(shift);
  hn_free(some);
  hn_free(more);
  return status;
}
