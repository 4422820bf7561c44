#include "improve/rehearse.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"
#include "improve/tune.h"
#include "optimize/step/tuned.h"

#include <stdlib.h>
#include <string.h>

/* Caches of this many times the last level's size are cold: more memory need not move through them. */
#define COLD_CACHES 2
/* A median of fewer runs of a step is no measurement. */
enum { FEWEST_SAMPLES = 2 };
/* A neighbour that takes a processor for some milliseconds spoils every run of a short step within them. So
 * steps are timed in windows that lie apart, until two of a step's agree. The middle one counts, not the
 * best: a neighbour that stays slows the profile, with which these times are compared, just as much. */
enum { MOST_WINDOWS = 4 };
#define AGREE 0.05 /* share by which two windows may differ */
/* Share of a step's time, by its model, that may ride along without the step being another one: less than a
 * rehearsal misses by. */
#define RIDES_ALONG 0.05
/* Runs of a step that its timing takes at least, the one that warms up included: what a step must have time
 * for before it is begun. */
#define TIMED_RUNS 4

/* Steps of the plan that are the same work by the same tactic. */
typedef struct row {
  const hn_step *step; /* the first of them */
  uint32_t count;
  double predicted;            /* of all of them, by the cost model */
  double window[MOST_WINDOWS]; /* seconds of one in each, in order of size */
  uint32_t windows;
} row;

typedef struct rehearsal {
  hn_arena arena;
  const hn_plan *plan;
  const hone_rehearsal_options *options;
  row *row;
  uint32_t n;
  uint32_t *of;    /* by step of the plan: its row + 1; 0: none */
  hn_map by_work;  /* rows */
  hn_map by_known; /* steps of the other plan, without what rides along */
  uint64_t other_bytes, start_ns;
  double measured, predicted; /* sums of what was timed: how far the cost models are off */
  bool stopped;
} rehearsal;

static double elapsed(const rehearsal *r) { return (double)(hn_now_ns() - r->start_ns) * 1e-9; }

/* ------------------------------------------------------------------ what there is to time */

/* "tactic threads signature": what two steps share that take the same time; bare: save for what rides along
 * (epilogues). NULL: out of memory. */
static const char *work_of(rehearsal *r, const hn_step *s, bool bare) {
  hn_str text = {0};
  hn_str_printf(&text, "%s %u ", s->tactic->name, s->threads);
  hone_step alone = s->desc;
  alone.n_epilogue = 0;
  if (alone.n_inputs > alone.n_anchor_inputs) alone.n_inputs = alone.n_anchor_inputs;
  hn_step_signature(bare && s->desc.n_epilogue ? &alone : &s->desc, &text);
  const char *work = text.failed ? NULL : hn_arena_strdup(&r->arena, text.ptr);
  hn_str_free(&text);
  return work;
}

static bool timeable(const hn_step *s) { return s->kind == HN_STEP_TACTIC && s->tactic && s->signature; }

static bool note_known(rehearsal *r, const hn_plan *known) {
  for (size_t i = 0; known && i < known->steps.len; i++) {
    const hn_step *s = &known->steps.ptr[i];
    if (!timeable(s)) continue;
    const char *work = work_of(r, s, true);
    if (!work || !hn_map_set(&r->by_known, work, (void *)s)) return false;
  }
  return true;
}

/* Whether the other plan has the step, but for what rides along and costs next to nothing. Its place there
 * tells more of it than a rehearsal. */
static bool is_known(rehearsal *r, const hn_step *s, bool *good) {
  const char *work = work_of(r, s, true);
  const hn_step *was = work ? hn_map_get(&r->by_known, work) : NULL;
  *good = work != NULL;
  return was && s->predicted_s <= (1 + RIDES_ALONG) * was->predicted_s;
}

static bool add_step(rehearsal *r, uint32_t i) {
  const hn_step *s = &r->plan->steps.ptr[i];
  bool good = true;
  if (!timeable(s) || is_known(r, s, &good)) return good;
  const char *work = good ? work_of(r, s, false) : NULL;
  if (!work) return false;
  row *at = hn_map_get(&r->by_work, work);
  if (!at) {
    at = &r->row[r->n++];
    *at = (row){.step = s};
    if (!hn_map_set(&r->by_work, work, at)) return false;
  }
  at->count++;
  at->predicted += s->predicted_s;
  r->of[i] = (uint32_t)(at - r->row) + 1;
  return true;
}

static double tensor_bytes(const hone_tensor_desc *d) {
  const int64_t bytes = d->dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(d);
  return bytes > 0 ? (double)bytes : 0;
}

/* What the rest of the model moves through the caches between two runs of a step: all packed weights, and the
 * largest step's tensors in place of the arena, which is not planned yet. */
static uint64_t bytes_of_others(const hn_plan *p) {
  double weights = 0, most = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    hone_tactic_need need = {0};
    double tensors = 0, constants = 0;
    for (uint32_t k = 0; k < s->desc.n_inputs; k++)
      *(s->desc.input[k].constant ? &constants : &tensors) += tensor_bytes(&s->desc.input[k].desc);
    for (uint32_t k = 0; k < s->desc.n_outputs; k++) tensors += tensor_bytes(&s->desc.output[k].desc);
    const bool packs = s->tactic && s->tactic->need &&
                       s->tactic->need(&s->desc, &p->machine, &need, NULL) == HONE_OK && need.blob_bytes;
    weights += packs ? (double)need.blob_bytes : constants;
    if (tensors > most) most = tensors;
  }
  const double cold = COLD_CACHES * (double)p->machine.l3;
  return (uint64_t)(cold > 0 && weights + most > cold ? cold : weights + most);
}

/* ------------------------------------------------------------------ timing */

static bool out_of_time(const rehearsal *r) { return elapsed(r) >= r->options->max_seconds; }

static bool stop(void *arg) {
  rehearsal *r = arg;
  r->stopped |= r->options->progress && !r->options->progress(r->options->progress_arg);
  return r->stopped || out_of_time(r);
}

/* Is there time left for a step that takes as much more than its model as those before it did? */
static bool fits(const rehearsal *r, const row *w) {
  const double factor = r->predicted > 0 && r->measured > r->predicted ? r->measured / r->predicted : 1;
  return w->step->predicted_s * factor * TIMED_RUNS < r->options->max_seconds - elapsed(r);
}

static void note_window(row *w, double seconds) {
  uint32_t at = w->windows++;
  for (; at > 0 && w->window[at - 1] > seconds; at--) w->window[at] = w->window[at - 1];
  w->window[at] = seconds;
}

/* 0: not timed. */
static double seconds_of(const row *w) {
  const uint32_t n = w->windows;
  return n ? (w->window[(n - 1) / 2] + w->window[n / 2]) / 2 : 0;
}

static bool settled(const row *w) {
  for (uint32_t i = 1; i < w->windows; i++)
    if (w->window[i] - w->window[i - 1] <= AGREE * w->window[i]) return true;
  return false;
}

static hone_status time_row(rehearsal *r, row *w, hone_error *error) {
  hn_trial trial = {
      .tactic = w->step->tactic, .threads = w->step->threads, .predicted = w->step->predicted_s};
  hone_error why = {0};
  hone_status status = hn_time_step(r->plan, w->step, &trial, 1, r->other_bytes, stop, r, &why);
  if (status == HONE_ERROR_CANCELLED && !r->stopped) status = HONE_OK; /* time is up: what there is, counts */
  if (status != HONE_OK) {
    if (error) *error = why;
    return status;
  }
  if (trial.samples < FEWEST_SAMPLES) return HONE_OK;
  if (!w->windows) r->measured += w->count * trial.median, r->predicted += w->predicted;
  note_window(w, trial.median);
  return HONE_OK;
}

static int larger_first(const void *a, const void *b) {
  const row *x = *(const row *const *)a, *y = *(const row *const *)b;
  return x->predicted != y->predicted ? (x->predicted < y->predicted) - (x->predicted > y->predicted)
                                      : (x > y) - (x < y);
}

/* What the cost models call expensive first: when time is up, the rest matters least. */
static hone_status time_rows(rehearsal *r, hone_error *error) {
  row **order = HN_NEW_ARRAY(&r->arena, row *, r->n + 1);
  if (!order) return hn_fail_memory(error, r->n, "a rehearsal");
  for (uint32_t i = 0; i < r->n; i++) order[i] = &r->row[i];
  qsort(order, r->n, sizeof *order, larger_first);
  hone_status status = HONE_OK;
  for (uint32_t window = 0; window < MOST_WINDOWS; window++)
    for (uint32_t i = 0; i < r->n && status == HONE_OK && !out_of_time(r); i++)
      if (!settled(order[i]) && fits(r, order[i])) status = time_row(r, order[i], error);
  return status;
}

hone_status hn_rehearse(const hn_plan *plan, const hn_plan *known, const hone_rehearsal_options *options,
                        double *seconds, hone_rehearsal *out, hone_error *error) {
  const size_t n = plan->steps.len;
  rehearsal r = {.plan = plan, .options = options, .start_ns = hn_now_ns()};
  *out = (hone_rehearsal){0};
  r.row = HN_NEW_ARRAY(&r.arena, row, n + 1);
  r.of = HN_NEW_ARRAY(&r.arena, uint32_t, n + 1);
  bool good = r.row && r.of && note_known(&r, known);
  for (uint32_t i = 0; i < n && good; i++) good = add_step(&r, i);
  r.other_bytes = bytes_of_others(plan);
  hone_status status = good ? time_rows(&r, error) : hn_fail_memory(error, n, "a rehearsal");
  for (uint32_t i = 0; i < n; i++) {
    const row *w = status == HONE_OK && r.of[i] ? &r.row[r.of[i] - 1] : NULL;
    seconds[i] = !w ? 0 : w->windows ? seconds_of(w) : -1;
  }
  for (uint32_t i = 0; i < r.n; i++) {
    out->steps += r.row[i].count;
    out->timed += r.row[i].windows ? r.row[i].count : 0;
  }
  out->seconds = elapsed(&r);
  hn_map_free(&r.by_work);
  hn_map_free(&r.by_known);
  hn_arena_free(&r.arena);
  return status;
}
