#include "cli/slow.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Time stamps that are kept at most before they are looked at. */
enum { STAMPS = 100000, LEAST_FOR_MEDIANS = 5 };

/* What a run lost here must be this much of all that it lost to be called the place. */
#define MOST_OF_IT 0.5

static hone_status out_of_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for slow runs"};
  return HONE_ERROR_MEMORY;
}

static hone_status record(slow_watch *w, hone_error *error) {
  w->n = 0;
  if (!w->records) return HONE_OK;
  w->facts = hone_facts_create();
  return w->facts ? hone_context_record(w->session->context, w->facts, w->room, error) : out_of_memory(error);
}

hone_status slow_begin(slow_watch *w, cli_session *s, const cli_args *args, hone_error *error) {
  *w = (slow_watch){.session = s, .steps = hone_plan_steps(s->plan)};
  w->records = strcmp(cli_device_name(args), "cpu") == 0;
  w->room = (uint32_t)(STAMPS / (w->steps + 8));
  w->room = w->room < 16 ? 16 : w->room > 4096 ? 4096 : w->room;
  w->time_s = calloc(w->room, sizeof *w->time_s);
  w->ms = calloc(w->room, sizeof *w->ms);
  w->seen = calloc(w->room, sizeof *w->seen);
  w->usual_step = calloc(w->steps + 1, sizeof *w->usual_step);
  w->usual_pause = calloc(w->steps + 1, sizeof *w->usual_pause);
  if (!w->time_s || !w->ms || !w->seen || !w->usual_step || !w->usual_pause) return out_of_memory(error);
  return record(w, error);
}

/* Times of the steps and of the pauses before them, [runs][steps]. */
typedef struct run_table {
  double *step, *pause;
} run_table;

static void fill(const slow_watch *w, const run_table *t) {
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
  return cli_median(spare, rows);
}

static void name_step(const slow_watch *w, size_t step, char *out) {
  size_t n;
  const hone_step_fact *f = hone_facts_steps(w->facts, &n);
  snprintf(out, SLOW_NAME, "%s", step < n && f[step].name ? f[step].name : "?");
}

/* Where the run lost most of its time. */
static void locate(const slow_watch *w, const run_table *t, size_t run, slow_run *r) {
  double most = 0;
  size_t at = 0;
  bool pause = false;
  for (size_t k = 0; k < w->steps; k++) {
    const double in_step = t->step[run * w->steps + k] - w->usual_step[k],
                 before = t->pause[run * w->steps + k] - w->usual_pause[k];
    if (in_step > most) most = in_step, at = k, pause = false;
    if (before > most) most = before, at = k, pause = true;
  }
  if (most < MOST_OF_IT * (r->facts.wall_ms - r->facts.usual_ms)) return;
  name_step(w, at, pause ? r->pause_before : r->step);
  r->facts.part_ms = (pause ? t->pause : t->step)[run * w->steps + at];
  r->facts.part_usual_ms = (pause ? w->usual_pause : w->usual_step)[at];
}

static double lost(const slow_run *r) { return r->facts.wall_ms - r->facts.usual_ms; }

static int by_loss(const void *pa, const void *pb) {
  const double a = lost(pa), b = lost(pb);
  return (a < b) - (a > b);
}

static void keep(slow_watch *w, const slow_run *r) {
  if (w->n_worst == SLOW_MOST && lost(&w->worst[SLOW_MOST - 1]) >= lost(r)) return;
  if (w->n_worst == SLOW_MOST) w->n_worst--;
  w->worst[w->n_worst++] = *r;
  qsort(w->worst, w->n_worst, sizeof *w->worst, by_loss);
}

/* Looks at the runs that were recorded; the medians of their steps are taken only when one stands out. */
static hone_status look(slow_watch *w, hone_error *error) {
  hone_sample_stats now;
  if (!hone_stats_compute(w->ms, w->n, &now)) return out_of_memory(error);
  const double usual = w->usual_ms > 0 ? w->usual_ms : now.p50;
  const bool first = w->usual_ms <= 0;
  size_t odd = 0;
  for (uint32_t i = 0; i < w->n; i++) odd += w->ms[i] > SLOW_FACTOR * usual;
  w->usual_ms = first || w->n >= LEAST_FOR_MEDIANS ? now.p50 : usual;
  if (!odd && !first) return HONE_OK;
  const size_t cells = (size_t)w->n * w->steps;
  run_table t = {calloc(cells + 1, sizeof *t.step), calloc(cells + 1, sizeof *t.pause)};
  double *spare = calloc((size_t)w->n + 1, sizeof *spare);
  hone_status status = t.step && t.pause && spare ? HONE_OK : out_of_memory(error);
  if (status == HONE_OK && w->facts) fill(w, &t);
  if (status == HONE_OK && w->facts && (first || w->n >= LEAST_FOR_MEDIANS))
    for (size_t k = 0; k < w->steps; k++) {
      w->usual_step[k] = median_of(t.step, k, w->n, w->steps, spare);
      w->usual_pause[k] = median_of(t.pause, k, w->n, w->steps, spare);
    }
  for (uint32_t i = 0; i < w->n && status == HONE_OK; i++) {
    if (w->ms[i] <= SLOW_FACTOR * usual) continue;
    slow_run r = {.fresh = true};
    r.facts = (hone_slow_run){.time_s = w->time_s[i],
                              .wall_ms = w->ms[i],
                              .usual_ms = usual,
                              .involuntary_switches = w->seen[i].involuntary_switches,
                              .minor_faults = w->seen[i].minor_faults,
                              .major_faults = w->seen[i].major_faults,
                              .clock_mhz = (double)NAN,
                              .usual_clock_mhz = (double)NAN,
                              .others_pct = (double)NAN,
                              .throttles = (double)NAN};
    if (w->facts) locate(w, &t, i, &r);
    keep(w, &r);
  }
  free(t.step);
  free(t.pause);
  free(spare);
  return status;
}

static hone_status take(slow_watch *w, hone_error *error) {
  hone_status status = HONE_OK;
  if (w->facts) status = hone_context_record_end(w->session->context, error);
  if (status == HONE_OK && w->n) status = look(w, error);
  hone_facts_destroy(w->facts);
  w->facts = NULL;
  return status;
}

hone_status slow_saw(slow_watch *w, double time_s, double ms, hone_disturbance seen, hone_error *error) {
  w->time_s[w->n] = time_s;
  w->ms[w->n] = ms;
  w->seen[w->n++] = seen;
  if (w->n < w->room) return HONE_OK;
  hone_status status = take(w, error);
  return status == HONE_OK ? record(w, error) : status;
}

hone_status slow_stretch(slow_watch *w, double clock_mhz, double others_pct, double throttles,
                         hone_error *error) {
  hone_status status = take(w, error);
  for (size_t i = 0; i < w->n_worst; i++) {
    if (!w->worst[i].fresh) continue;
    w->worst[i].facts.clock_mhz = clock_mhz;
    w->worst[i].facts.others_pct = others_pct;
    w->worst[i].facts.throttles = throttles;
    w->worst[i].fresh = false;
  }
  return status == HONE_OK ? record(w, error) : status;
}

void slow_settle(slow_watch *w, double usual_ms, double usual_clock_mhz) {
  size_t kept = 0;
  for (size_t i = 0; i < w->n_worst; i++) {
    w->worst[i].facts.usual_ms = usual_ms;
    w->worst[i].facts.usual_clock_mhz = usual_clock_mhz;
    if (w->worst[i].facts.wall_ms > SLOW_FACTOR * usual_ms) w->worst[kept++] = w->worst[i];
  }
  w->n_worst = kept;
  if (kept) qsort(w->worst, kept, sizeof *w->worst, by_loss);
  for (size_t i = 0; i < kept; i++) { /* they lie where they stay now */
    slow_run *r = &w->worst[i];
    r->facts.step = *r->step ? r->step : NULL;
    r->facts.pause_before = *r->pause_before ? r->pause_before : NULL;
  }
}

void slow_end(slow_watch *w) {
  hone_error none = {0};
  if (w->facts) hone_context_record(w->session->context, NULL, 0, &none);
  hone_facts_destroy(w->facts);
  free(w->time_s);
  free(w->ms);
  free(w->seen);
  free(w->usual_step);
  free(w->usual_pause);
  w->facts = NULL;
  w->time_s = w->ms = w->usual_step = w->usual_pause = NULL;
  w->seen = NULL;
}

/* ---- what readers see ---- */

enum { SHOWN = 5 };

static int put_part(char *buf, size_t size, int n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int put_part(char *buf, size_t size, int n, const char *format, ...) {
  if (n < 0 || (size_t)n >= size) return n;
  va_list ap;
  va_start(ap, format);
  const int k = vsnprintf(buf + n, size - (size_t)n, format, ap);
  va_end(ap);
  return k < 0 ? n : n + k;
}

/* Where and why, in a line. */
static void describe(const hone_slow_run *r, char *buf, size_t size) {
  int n = 0;
  buf[0] = 0;
  if (r->step)
    n = put_part(buf, size, n, "step '%s' took %.3f ms instead of %.3f", r->step, r->part_ms,
                 r->part_usual_ms);
  else if (r->pause_before)
    n = put_part(buf, size, n, "a pause of %.3f ms before '%s'", r->part_ms, r->pause_before);
  const hone_slow_cause cause = hone_slow_run_cause(r);
  const char *and = n ? "; " : "";
  switch (cause) {
  case HONE_SLOW_DISK: put_part(buf, size, n, "%s%u pages were read from disk", and, r->major_faults); break;
  case HONE_SLOW_SWITCHED:
    put_part(buf, size, n, "%sthe system gave the processor to somebody else %u time%s", and,
             r->involuntary_switches, r->involuntary_switches == 1 ? "" : "s");
    break;
  case HONE_SLOW_MAPPED: put_part(buf, size, n, "%s%u pages were mapped", and, r->minor_faults); break;
  case HONE_SLOW_CLOCK:
    put_part(buf, size, n, "%sthe clock was at %.0f MHz, usually %.0f", and, r->clock_mhz,
             r->usual_clock_mhz);
    break;
  case HONE_SLOW_NEIGHBOURS:
    put_part(buf, size, n, "%sothers took %.0f %% of the processors around it", and, r->others_pct);
    break;
  case HONE_SLOW_UNSEEN:
    put_part(buf, size, n, "%s",
             n ? "; no counter explains it" : "spread over the whole run; no counter explains it");
    break;
  }
}

void slow_text(const slow_watch *w) {
  char line[512];
  for (size_t i = 0; i < w->n_worst && i < SHOWN; i++) {
    const hone_slow_run *r = &w->worst[i].facts;
    describe(r, line, sizeof line);
    cli_print("  %-12sat %.2f s: %.3f ms, %.1f times the median: %s\n", i ? "" : "slowest", r->time_s,
              r->wall_ms, r->wall_ms / r->usual_ms, line);
  }
  if (w->n_worst > SHOWN)
    cli_print("  %-12s%zu%s more of over %.1f times the median\n", "", w->n_worst - SHOWN,
              w->n_worst == SLOW_MOST ? " or" : "", SLOW_FACTOR);
}

json_t *slow_json(const slow_watch *w) {
  json_t *list = json_array();
  char line[512];
  for (size_t i = 0; i < w->n_worst; i++) {
    const hone_slow_run *r = &w->worst[i].facts;
    describe(r, line, sizeof line);
    json_array_append_new(
        list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:s, s:o}", "time_s",
                        cli_real(r->time_s), "wall_ms", cli_real(r->wall_ms), "usual_ms",
                        cli_real(r->usual_ms), "step", cli_text(r->step), "pause_before",
                        cli_text(r->pause_before), "part_ms", cli_real(r->part_ms), "part_usual_ms",
                        cli_real(r->part_usual_ms), "involuntary_switches", (int)r->involuntary_switches,
                        "minor_faults", (int)r->minor_faults, "major_faults", (int)r->major_faults,
                        "clock_mhz", cli_real(r->clock_mhz), "others_pct", cli_real(r->others_pct), "cause",
                        hone_slow_cause_name(hone_slow_run_cause(r)), "explanation", cli_text(line)));
  }
  return list;
}
