#include "api/measure/slow.h"

#include "api/measure/median.h"
#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time stamps that are kept at most before they are looked at. */
enum { STAMPS = 100000, LEAST_FOR_MEDIANS = 5, NAME = sizeof((hone_slow_place *)0)->step };

/* What a run lost here must be this much of all that it lost to be called the place. */
#define MOST_OF_IT 0.5

static hone_status out_of_memory(hone_error *error) {
  return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for slow runs");
}

static hone_status record(hn_slow_watch *w, hone_error *error) {
  w->n = 0;
  if (!w->records) return HONE_OK;
  w->facts = hone_facts_create();
  return w->facts ? hone_context_record(w->subject->context, w->facts, w->room, error) : out_of_memory(error);
}

hone_status hn_slow_begin(hn_slow_watch *w, const hone_subject *s, hone_error *error) {
  *w = (hn_slow_watch){.subject = s, .steps = hone_plan_steps(s->plan)};
  w->records = !s->device || strcmp(s->device, "cpu") == 0;
  w->room = (uint32_t)(STAMPS / (w->steps + 8));
  w->room = w->room < 16 ? 16 : w->room > 4096 ? 4096 : w->room;
  w->time_s = hn_calloc(w->room, sizeof *w->time_s);
  w->ms = hn_calloc(w->room, sizeof *w->ms);
  w->seen = hn_calloc(w->room, sizeof *w->seen);
  w->usual_step = hn_calloc(w->steps + 1, sizeof *w->usual_step);
  w->usual_pause = hn_calloc(w->steps + 1, sizeof *w->usual_pause);
  if (!w->time_s || !w->ms || !w->seen || !w->usual_step || !w->usual_pause) return out_of_memory(error);
  return record(w, error);
}

/* Times of the steps and of the pauses before them, [runs][steps]. */
typedef struct run_table {
  double *step, *pause;
} run_table;

static void fill(const hn_slow_watch *w, const run_table *t) {
  size_t n;
  const hone_span *span = hone_facts_spans(w->facts, &n);
  int32_t run = -1;
  int64_t end = 0;
  for (size_t i = 0; i < n; i++) {
    const hone_span *s = &span[i];
    if (s->kind == HONE_SPAN_RUN || s->iteration < 0 || s->iteration >= (int32_t)w->n || s->step < 0 ||
        s->step >= (int32_t)w->steps)
      continue;
    const size_t at = (size_t)s->iteration * w->steps + (size_t)s->step;
    t->step[at] += 1e-6 * (double)(s->end_ns - s->start_ns);
    if (run == s->iteration && s->start_ns > end) t->pause[at] += 1e-6 * (double)(s->start_ns - end);
    run = s->iteration;
    end = s->end_ns;
  }
}

static double median_of(const double *table, size_t column, size_t rows, size_t columns, double *spare) {
  for (size_t i = 0; i < rows; i++) spare[i] = table[i * columns + column];
  return hn_median_of(spare, rows);
}

static void name_step(const hn_slow_watch *w, size_t step, char *out) {
  size_t n;
  const hone_step_fact *f = hone_facts_steps(w->facts, &n);
  snprintf(out, NAME, "%s", step < n && f[step].name ? f[step].name : "?");
}

/* Where the run lost most of its time. */
static void locate(const hn_slow_watch *w, const run_table *t, size_t run, hone_slow_place *r) {
  double most = 0;
  size_t at = 0;
  bool pause = false;
  for (size_t k = 0; k < w->steps; k++) {
    const double in_step = t->step[run * w->steps + k] - w->usual_step[k],
                 before = t->pause[run * w->steps + k] - w->usual_pause[k];
    if (in_step > most) most = in_step, at = k, pause = false;
    if (before > most) most = before, at = k, pause = true;
  }
  if (most < MOST_OF_IT * (r->run.wall_ms - r->run.usual_ms)) return;
  name_step(w, at, pause ? r->pause_before : r->step);
  r->run.part_ms = (pause ? t->pause : t->step)[run * w->steps + at];
  r->run.part_usual_ms = (pause ? w->usual_pause : w->usual_step)[at];
}

static double lost(const hn_slow_kept *r) { return r->place.run.wall_ms - r->place.run.usual_ms; }

static int by_loss(const void *pa, const void *pb) {
  const double a = lost(pa), b = lost(pb);
  return (a < b) - (a > b);
}

static void keep(hn_slow_watch *w, const hn_slow_kept *r) {
  if (w->n_worst == HONE_MOST_SLOW_RUNS && lost(&w->worst[HONE_MOST_SLOW_RUNS - 1]) >= lost(r)) return;
  if (w->n_worst == HONE_MOST_SLOW_RUNS) w->n_worst--;
  w->worst[w->n_worst++] = *r;
  qsort(w->worst, w->n_worst, sizeof *w->worst, by_loss);
}

/* Looks at the runs that were recorded; the medians of their steps are taken only when one stands out. */
static hone_status look(hn_slow_watch *w, hone_error *error) {
  hone_sample_stats now;
  if (!hone_stats_compute(w->ms, w->n, &now)) return out_of_memory(error);
  const double usual = w->usual_ms > 0 ? w->usual_ms : now.p50;
  const bool first = w->usual_ms <= 0;
  size_t odd = 0;
  for (uint32_t i = 0; i < w->n; i++) odd += w->ms[i] > HONE_SLOW_FACTOR * usual;
  w->usual_ms = first || w->n >= LEAST_FOR_MEDIANS ? now.p50 : usual;
  if (!odd && !first) return HONE_OK;
  const size_t cells = (size_t)w->n * w->steps;
  run_table t = {hn_calloc(cells + 1, sizeof *t.step), hn_calloc(cells + 1, sizeof *t.pause)};
  double *spare = hn_calloc((size_t)w->n + 1, sizeof *spare);
  hone_status status = t.step && t.pause && spare ? HONE_OK : out_of_memory(error);
  if (status == HONE_OK && w->facts) fill(w, &t);
  if (status == HONE_OK && w->facts && (first || w->n >= LEAST_FOR_MEDIANS))
    for (size_t k = 0; k < w->steps; k++) {
      w->usual_step[k] = median_of(t.step, k, w->n, w->steps, spare);
      w->usual_pause[k] = median_of(t.pause, k, w->n, w->steps, spare);
    }
  for (uint32_t i = 0; i < w->n && status == HONE_OK; i++) {
    if (w->ms[i] <= HONE_SLOW_FACTOR * usual) continue;
    hn_slow_kept r = {.fresh = true};
    r.place.run = (hone_slow_run){.time_s = w->time_s[i],
                                  .wall_ms = w->ms[i],
                                  .usual_ms = usual,
                                  .involuntary_switches = w->seen[i].involuntary_switches,
                                  .minor_faults = w->seen[i].minor_faults,
                                  .major_faults = w->seen[i].major_faults,
                                  .clock_mhz = (double)NAN,
                                  .usual_clock_mhz = (double)NAN,
                                  .others_pct = (double)NAN,
                                  .throttles = (double)NAN};
    if (w->facts) locate(w, &t, i, &r.place);
    keep(w, &r);
  }
  hn_free(t.step);
  hn_free(t.pause);
  hn_free(spare);
  return status;
}

static hone_status take(hn_slow_watch *w, hone_error *error) {
  hone_status status = HONE_OK;
  if (w->facts) status = hone_context_record_end(w->subject->context, error);
  if (status == HONE_OK && w->n) status = look(w, error);
  hone_facts_destroy(w->facts);
  w->facts = NULL;
  return status;
}

hone_status hn_slow_saw(hn_slow_watch *w, double time_s, double ms, hone_disturbance seen,
                        hone_error *error) {
  w->time_s[w->n] = time_s;
  w->ms[w->n] = ms;
  w->seen[w->n++] = seen;
  if (w->n < w->room) return HONE_OK;
  hone_status status = take(w, error);
  return status == HONE_OK ? record(w, error) : status;
}

hone_status hn_slow_stretch(hn_slow_watch *w, double clock_mhz, double others_pct, double throttles,
                            hone_error *error) {
  hone_status status = take(w, error);
  for (size_t i = 0; i < w->n_worst; i++) {
    if (!w->worst[i].fresh) continue;
    w->worst[i].place.run.clock_mhz = clock_mhz;
    w->worst[i].place.run.others_pct = others_pct;
    w->worst[i].place.run.throttles = throttles;
    w->worst[i].fresh = false;
  }
  return status == HONE_OK ? record(w, error) : status;
}

size_t hn_slow_settle(hn_slow_watch *w, double usual_ms, double usual_clock_mhz, hone_slow_place *out) {
  size_t kept = 0;
  for (size_t i = 0; i < w->n_worst; i++) {
    w->worst[i].place.run.usual_ms = usual_ms;
    w->worst[i].place.run.usual_clock_mhz = usual_clock_mhz;
    if (w->worst[i].place.run.wall_ms > HONE_SLOW_FACTOR * usual_ms) w->worst[kept++] = w->worst[i];
  }
  w->n_worst = kept;
  if (kept) qsort(w->worst, kept, sizeof *w->worst, by_loss);
  for (size_t i = 0; i < kept; i++) { /* they lie where they stay now */
    hone_slow_place *r = &out[i];
    *r = w->worst[i].place;
    r->run.step = *r->step ? r->step : NULL;
    r->run.pause_before = *r->pause_before ? r->pause_before : NULL;
  }
  return kept;
}

void hn_slow_end(hn_slow_watch *w) {
  hone_error none = {0};
  if (w->facts) hone_context_record(w->subject->context, NULL, 0, &none);
  hone_facts_destroy(w->facts);
  hn_free(w->time_s);
  hn_free(w->ms);
  hn_free(w->seen);
  hn_free(w->usual_step);
  hn_free(w->usual_pause);
  w->facts = NULL;
  w->time_s = w->ms = w->usual_step = w->usual_pause = NULL;
  w->seen = NULL;
}
