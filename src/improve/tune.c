#include "improve/tune.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "optimize/step/choose.h"

#include <stdlib.h>
#include <string.h>

/* Steps that take less than this are tried on one thread, too: waking the others may cost more than they
 * give. */
#define SMALL_STEP 30e-6

/* Rows whose kernels are compiled side by side. */
enum { TOGETHER = 8 };

/* What the report's rows stand for, beside them. */
typedef struct row {
  const char *signature;
  hn_trial *trial;
  uint32_t n;
  double weight; /* of the row in the time that tuning takes */
} row;

typedef struct tuning {
  hn_arena arena;
  const hn_plan *plan;
  hn_tuned *table;
  const hone_tune_options *options;
  hone_tune_report *report;
  hone_tune_step *step;
  row *row;
  uint32_t n, done, total;
  uint64_t other_bytes, start_ns;
  double weight_done, weight_total;
} tuning;

static double elapsed(const tuning *t) { return (double)(hn_now_ns() - t->start_ns) * 1e-9; }

static bool asked_to_stop(tuning *t) {
  if (t->report->stopped) return true;
  double left = t->weight_done > 0 ? elapsed(t) * (t->weight_total - t->weight_done) / t->weight_done : -1;
  if (left >= 0 && t->options->max_seconds > 0 && left > t->options->max_seconds - elapsed(t))
    left = t->options->max_seconds > elapsed(t) ? t->options->max_seconds - elapsed(t) : 0;
  if (t->options->progress && !t->options->progress(t->options->progress_arg, t->done, t->total, left))
    t->report->stopped = true;
  return t->report->stopped;
}

static bool out_of_time(const tuning *t) {
  return t->options->max_seconds > 0 && elapsed(t) >= t->options->max_seconds;
}

static bool stop(void *arg) { return asked_to_stop(arg); }

/* ------------------------------------------------------------------ rows */

_Static_assert(HN_MAX_TIMINGS >= HN_MAX_CANDIDATES, "all tactics of a step are timed");

/* Every accepting tactic that is not hopeless, and for small steps the same on one thread. */
static bool make_trials(tuning *t, const hn_step *s, row *r) {
  hn_candidate list[HN_MAX_CANDIDATES];
  uint32_t n = hn_accepting_tactics(t->plan, &s->desc, list, NULL);
  r->trial = HN_NEW_ARRAY(&t->arena, hn_trial, 2 * n + 1);
  if (!r->trial) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!hn_hopeless(t->plan, list, n, i))
      r->trial[r->n++] = (hn_trial){.tactic = list[i].tactic, .predicted = list[i].predicted};
  for (uint32_t i = 0; i < n && !t->plan->backend->asynchronous && t->plan->machine.threads > 1; i++)
    if (list[i].predicted < SMALL_STEP && r->n < HN_MAX_TIMINGS)
      r->trial[r->n++] = (hn_trial){.tactic = list[i].tactic, .predicted = list[i].predicted, .threads = 1};
  return true;
}

static uint32_t untuned_choice(const row *r) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < r->n; i++)
    if (!r->trial[i].threads && r->trial[i].predicted < r->trial[best].predicted) best = i;
  return best;
}

/* An earlier measurement of all these trials, of which it chose one. */
static bool known(tuning *t, row *r, hone_tune_step *out) {
  const hn_tuned_step *s = hn_tuned_find(t->table, r->signature);
  bool chosen = false;
  if (!s) return false;
  for (uint32_t i = 0; i < r->n; i++) {
    const hn_timing *found = NULL;
    for (uint32_t k = 0; k < s->n && !found; k++)
      if (s->timing[k].threads == r->trial[i].threads &&
          s->timing[k].version == r->trial[i].tactic->version &&
          strcmp(s->timing[k].tactic, r->trial[i].tactic->name) == 0)
        found = &s->timing[k];
    if (!found) return false;
    r->trial[i].median = found->seconds;
    r->trial[i].spread = found->spread;
    r->trial[i].differs = found->differs;
    if (found == &s->timing[s->chosen]) out->chosen = i, chosen = true;
  }
  return chosen;
}

static hone_status add_row(tuning *t, uint32_t index, hone_error *error) {
  const hn_step *s = &t->plan->steps.ptr[index];
  if (s->kind != HN_STEP_TACTIC) return HONE_OK;
  const char *text = s->signature;
  for (uint32_t i = 0; i < t->n; i++)
    if (strcmp(t->row[i].signature, text) == 0) {
      t->step[i].count++;
      return HONE_OK;
    }
  row *r = &t->row[t->n];
  hone_tune_step *out = &t->step[t->n];
  *r = (row){.signature = text};
  if (!make_trials(t, s, r)) return hn_fail_memory(error, 0, "tuning");
  if (!r->n) return HONE_OK; /* a plan of other masks */
  *out = (hone_tune_step){.step = index, .count = 1, .name = s->desc.name, .what = s->what};
  if (s->desc.n_outputs && s->desc.output[0].desc.dtype != HONE_DTYPE_NONE)
    hone_desc_format(&s->desc.output[0].desc, out->shape, sizeof out->shape);
  out->untuned = out->chosen = untuned_choice(r);
  out->state = HONE_TUNE_SKIPPED;
  if (r->n == 1 && !t->options->alone && !t->plan->weighed)
    out->state = HONE_TUNE_ALONE;
  else if (known(t, r, out) && !t->options->again)
    out->state = HONE_TUNE_KNOWN;
  for (uint32_t i = 0; i < r->n; i++) r->weight += r->trial[i].predicted * 15 + 0.02;
  t->n++;
  return HONE_OK;
}

/* ------------------------------------------------------------------ measuring */

static hone_status measure(tuning *t, uint32_t i, hone_error *error) {
  row *r = &t->row[i];
  hone_tune_step *out = &t->step[i];
  const hn_step *s = &t->plan->steps.ptr[out->step];
  hone_status status = hn_time_step(t->plan, s, r->trial, r->n, t->other_bytes, stop, t, error);
  if (status != HONE_OK) {
    if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", s->desc.name, s->desc.anchor);
    return status;
  }
  const uint32_t fastest = hn_trial_fastest(r->trial, r->n);
  hn_timing timing[HN_MAX_TIMINGS];
  for (uint32_t k = 0; k < r->n; k++)
    timing[k] = (hn_timing){r->trial[k].tactic->name, r->trial[k].tactic->version, r->trial[k].threads,
                            r->trial[k].median,       r->trial[k].spread,          r->trial[k].differs};
  /* A tie goes to what an untuned plan would do. */
  const hn_trial *usual = &r->trial[out->untuned];
  out->chosen = usual->differs || hn_trial_beats(&r->trial[fastest], usual) ? fastest : out->untuned;
  out->state = HONE_TUNE_MEASURED;
  hn_tuned_step entry = {r->signature, out->chosen, r->n, timing};
  return hn_tuned_put(t->table, &entry) ? HONE_OK : hn_fail_memory(error, 0, "tuned tactics");
}

static double worth(const tuning *t, uint32_t i) {
  return t->step[i].count * t->row[i].trial[t->step[i].untuned].predicted;
}

/* The rows that wait, those that are worth most first. Returns how many. */
static uint32_t waiting(const tuning *t, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (t->step[i].state != HONE_TUNE_SKIPPED) continue;
    uint32_t at = n++;
    for (; at > 0 && worth(t, order[at - 1]) < worth(t, i); at--) order[at] = order[at - 1];
    order[at] = i;
  }
  return n;
}

static bool stop_or_time(void *arg) { return out_of_time(arg) || asked_to_stop(arg); }

static hone_status make_ready(tuning *t, const uint32_t *order, uint32_t n, hone_error *error) {
  hn_ready list[TOGETHER];
  if (n > TOGETHER) n = TOGETHER;
  for (uint32_t i = 0; i < n; i++) {
    const row *r = &t->row[order[i]];
    list[i] = (hn_ready){&t->plan->steps.ptr[t->step[order[i]].step], r->trial, r->n};
  }
  return hn_make_ready(t->plan, list, n, stop_or_time, t, error);
}

static hone_status measure_all(tuning *t, hone_error *error) {
  hone_status status = HONE_OK;
  uint32_t *order = hn_calloc(t->n + 1, sizeof *order);
  if (!order) return hn_fail_memory(error, t->n, "tuning");
  uint32_t n = waiting(t, order);
  if (t->options->max_steps && n > t->options->max_steps) n = t->options->max_steps;
  for (uint32_t k = 0; k < n && status == HONE_OK && !out_of_time(t) && !asked_to_stop(t); k++) {
    if (k % TOGETHER == 0) status = make_ready(t, order + k, n - k, error);
    if (status == HONE_OK) status = measure(t, order[k], error);
    if (status == HONE_ERROR_CANCELLED && t->report->stopped) status = HONE_OK;
    t->weight_done += t->row[order[k]].weight;
    t->done++;
  }
  hn_free(order);
  if (t->done == t->total && t->total && t->options->progress)
    t->options->progress(t->options->progress_arg, t->done, t->total, 0);
  return status;
}

static hone_status fill_report(tuning *t, hone_error *error) {
  hone_tune_report *r = t->report;
  r->n_steps = t->n;
  r->step = t->step;
  r->seconds = elapsed(t);
  r->weighed = t->plan->weighed;
  for (uint32_t i = 0; i < t->n; i++) {
    const row *w = &t->row[i];
    hone_tune_candidate *list = HN_NEW_ARRAY(&t->arena, hone_tune_candidate, w->n);
    if (!list) return hn_fail_memory(error, w->n, "tuning");
    bool have = t->step[i].state == HONE_TUNE_MEASURED || t->step[i].state == HONE_TUNE_KNOWN;
    for (uint32_t k = 0; k < w->n; k++)
      list[k] = (hone_tune_candidate){w->trial[k].tactic->name,      w->trial[k].threads,
                                      w->trial[k].predicted,         have ? w->trial[k].median : 0,
                                      have ? w->trial[k].spread : 0, have && w->trial[k].differs};
    t->step[i].candidate = list;
    t->step[i].n_candidates = w->n;
    r->measured += t->step[i].state == HONE_TUNE_MEASURED;
    r->known += t->step[i].state == HONE_TUNE_KNOWN;
    r->alone += t->step[i].state == HONE_TUNE_ALONE;
    r->skipped += t->step[i].state == HONE_TUNE_SKIPPED;
  }
  return HONE_OK;
}

hone_status hn_tune(const hn_plan *plan, hn_tuned *table, const hone_tune_options *options,
                    hone_tune_report *out, hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  *out = (hone_tune_report){0};
  tuning *t = hn_calloc(1, sizeof *t);
  if (!t) return hn_fail_memory(error, sizeof *t, "tuning");
  *t = (tuning){.plan = plan, .table = table, .options = options, .report = out, .start_ns = hn_now_ns()};
  out->impl = t;
  t->other_bytes = plan->blob_bytes + plan->constant_bytes + plan->arena_bytes;
  t->step = HN_NEW_ARRAY(&t->arena, hone_tune_step, plan->steps.len);
  t->row = HN_NEW_ARRAY(&t->arena, row, plan->steps.len);
  hone_status status = t->step && t->row ? HONE_OK : hn_fail_memory(error, plan->steps.len, "tuning");
  for (uint32_t i = 0; i < plan->steps.len && status == HONE_OK; i++) status = add_row(t, i, error);
  for (uint32_t i = 0; i < t->n; i++)
    if (t->step[i].state == HONE_TUNE_SKIPPED) t->total++, t->weight_total += t->row[i].weight;
  if (status == HONE_OK) status = measure_all(t, error);
  if (status == HONE_OK) status = fill_report(t, error);
  status = hn_settle(status, lost, error);
  if (status != HONE_OK) hn_tune_report_free(out);
  return status;
}

void hn_tune_report_free(hone_tune_report *r) {
  tuning *t = r->impl;
  if (t) {
    hn_arena_free(&t->arena);
    hn_free(t);
  }
  *r = (hone_tune_report){0};
}
