/* What each unit takes in each type, and the result against the input: sides run in turn, so that what the
 * machine does meanwhile hits all alike. */
#include "api/measure/watch.h"
#include "api/mixed/mixed.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUPS = 2, MOST_RUNS = 12, PAIRS = 48 };
#define TURN_MS 5.0 /* of one side's runs, of which the fastest counts */

static double run_ms(const hn_mixing *m, const hn_mix_side *s, const hone_tensor *const *in,
                     hone_status *status, hone_error *error) {
  const double begun = hn_watch_ms();
  *status = hn_watch_run(m->o->watch, s->context, in, 0, error);
  return hn_watch_ms() - begun;
}

/* Runs of a turn: at least two, because the first finds another side's data in the caches. */
static uint32_t runs_of_turn(double ms) {
  const double n = ms > 0 ? TURN_MS / ms : MOST_RUNS;
  return n < 2 ? 2 : n > MOST_RUNS ? MOST_RUNS : (uint32_t)n;
}

static hone_status warm_up(const hn_mixing *m, const hn_mix_side *s, const hone_tensor *const *in,
                           uint32_t *turn, hone_error *error) {
  hone_status status = HONE_OK;
  double best = INFINITY;
  for (int i = 0; i < WARMUPS && status == HONE_OK; i++) best = fmin(best, run_ms(m, s, in, &status, error));
  if (runs_of_turn(best) > *turn) *turn = runs_of_turn(best);
  return status;
}

/* ---- units */

/* A step's time in each round, the least of the runs of a turn, onto its unit. */
static hone_status spread(hn_mixing *m, const hn_mix_side *s, hone_mixed_type type, const hone_facts *facts,
                          uint32_t turn, hone_error *error) {
  hone_profile *p = NULL;
  const hone_status status = hone_profile_create(facts, NULL, &p, error);
  if (status != HONE_OK) return status;
  for (uint32_t u = 0; u < m->n_units; u++) m->unit[u].timed[type] = false;
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    hone_step_info step;
    if (l->step < 0 || !l->samples_ms || l->stats.count < (size_t)turn * HN_MIX_ROUNDS ||
        !hone_plan_step(s->plan, (uint32_t)l->step, &step))
      continue;
    const int32_t unit = hn_mix_unit_of(m, &step);
    if (unit < 0) continue;
    hn_mix_unit *u = &m->unit[unit];
    u->timed[type] = true;
    for (uint32_t r = 0; r < HN_MIX_ROUNDS; r++) {
      double least = INFINITY;
      for (uint32_t k = 0; k < turn; k++) least = fmin(least, l->samples_ms[r * turn + k]);
      u->ms[type][r] += least;
    }
  }
  hone_profile_destroy(p);
  return HONE_OK;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void find_medians(hn_mixing *m) {
  for (uint32_t i = 0; i < m->n_units; i++)
    for (int t = 0; t < HONE_MIXED_TYPES; t++) {
      double sorted[HN_MIX_ROUNDS];
      hn_mix_unit *u = &m->unit[i];
      memcpy(sorted, u->ms[t], sizeof sorted);
      qsort(sorted, HN_MIX_ROUNDS, sizeof *sorted, by_size);
      u->median[t] = u->timed[t] ? sorted[HN_MIX_ROUNDS / 2] : (double)NAN;
    }
}

static hone_status run_rounds(hn_mixing *m, const hn_mix_side *sides, const hone_tensor *const *in,
                              uint32_t turn, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t r = 0; r < HN_MIX_ROUNDS && status == HONE_OK; r++) {
    for (int t = 0; t < HONE_MIXED_TYPES && status == HONE_OK; t++)
      for (uint32_t k = 0; sides[t].plan && k < turn && status == HONE_OK; k++)
        run_ms(m, &sides[t], in, &status, error);
    if (status == HONE_OK && !hn_mix_tell(m, "time types", r + 1, HN_MIX_ROUNDS))
      status = hn_watch_stopped(error);
  }
  return status;
}

hone_status hn_mix_time_units(hn_mixing *m, const hn_mix_side *sides, hone_error *error) {
  hone_facts *facts[HONE_MIXED_TYPES] = {NULL};
  const hone_tensor **in = HN_NEW_ARRAY(&m->arena, const hone_tensor *, hone_plan_inputs(m->wide.plan) + 1);
  uint32_t turn = 2;
  hone_status status = in ? hn_mix_read(m, HN_MIX_CHOOSES, 0, in, error) : hn_fail_memory(error, 0, "inputs");
  for (int t = 0; t < HONE_MIXED_TYPES && status == HONE_OK; t++)
    if (sides[t].plan) status = warm_up(m, &sides[t], in, &turn, error);
  for (int t = 0; t < HONE_MIXED_TYPES && status == HONE_OK; t++) {
    if (!sides[t].plan) continue;
    facts[t] = hone_facts_create();
    status = facts[t] ? hone_context_record(sides[t].context, facts[t], turn * HN_MIX_ROUNDS, error)
                      : hn_fail_memory(error, 0, "facts");
  }
  if (status == HONE_OK) status = run_rounds(m, sides, in, turn, error);
  for (int t = 0; t < HONE_MIXED_TYPES; t++) {
    hone_error none = {0};
    if (facts[t] && status == HONE_OK) status = hone_context_record_end(sides[t].context, error);
    if (facts[t] && status == HONE_OK)
      status = spread(m, &sides[t], (hone_mixed_type)t, facts[t], turn, error);
    if (facts[t] && status != HONE_OK) hone_context_record(sides[t].context, NULL, 0, &none);
  }
  for (int t = 0; t < HONE_MIXED_TYPES; t++) hone_facts_destroy(facts[t]);
  if (status == HONE_OK) find_medians(m);
  return status;
}

/* ---- the result */

static double turn_ms(const hn_mixing *m, const hn_mix_side *s, const hone_tensor *const *in, uint32_t turn,
                      hone_status *status, hone_error *error) {
  double least = INFINITY;
  for (uint32_t k = 0; k < turn && *status == HONE_OK; k++)
    least = fmin(least, run_ms(m, s, in, status, error));
  return fmax(least, 1e-6);
}

hone_status hn_mix_turns(hn_mixing *m, const hn_mix_side *a, const hn_mix_side *b, uint32_t rounds,
                         double *ms_a, double *ms_b, hone_error *error) {
  uint32_t turn = 2;
  const hone_tensor **in = HN_NEW_ARRAY(&m->arena, const hone_tensor *, hone_plan_inputs(m->wide.plan) + 1);
  hone_status status = in ? hn_mix_read(m, HN_MIX_CHOOSES, 0, in, error) : hn_fail_memory(error, 0, "inputs");
  if (status == HONE_OK) status = warm_up(m, a, in, &turn, error);
  if (status == HONE_OK) status = warm_up(m, b, in, &turn, error);
  for (uint32_t n = 0; n < rounds && status == HONE_OK; n++) {
    for (uint32_t k = 0; k < 2; k++) { /* ABBA */
      const bool first = (n + k) % 2 == 0;
      (first ? ms_a : ms_b)[n] = turn_ms(m, first ? a : b, in, turn, &status, error);
    }
    if (status == HONE_OK && !hn_mix_tell(m, "time models", n + 1, rounds)) status = hn_watch_stopped(error);
  }
  return status;
}

hone_status hn_mix_race(hn_mixing *m, const hn_mix_side *result, bool *faster, hone_error *error) {
  hone_mixed_report *out = m->report;
  double before[PAIRS], after[PAIRS];
  hone_gate_result judged = {0};
  hone_status status = hn_mix_turns(m, &m->wide, result, PAIRS, before, after, error);
  if (status == HONE_OK)
    status = hone_gate_pairs(before, after, PAIRS, &(hone_gate_options){.max_pairs = PAIRS}, &judged, error);
  if (status != HONE_OK) return status;
  out->timed = true;
  out->before_ms = judged.baseline_ms;
  out->after_ms = judged.candidate_ms;
  out->change = judged.change;
  out->low = judged.low;
  out->high = judged.high;
  out->pairs = PAIRS;
  *faster = judged.high < 0;
  return HONE_OK;
}
