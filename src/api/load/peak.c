#include "api/load/peak.h"
#include "api/load/course.h"
#include "api/load/early.h"
#include "api/load/run.h"

#include "base/error.h"

#include <stdio.h>

enum { STEPS = 32 };
static const double idle = 0.02;     /* of the time busy: fewer queries would not find more free contexts */
static const double most_rate = 1e7; /* a second: nothing serves more, and nobody asks for it */
static const double loaded = 0.9;    /* contexts that are busy so much have nothing left */

/* ---------------------------------------------------------------- why no more */

static hone_load_limit limit_of(const hone_load_result *r) {
  if (r->fast_enough && !r->over && !r->gave_up) return HONE_LIMIT_COUNT;
  if (r->run_p50_ms * 1e6 > (double)r->settings.bound_ns) return HONE_LIMIT_RUNS;
  /* What late ones lost: in runs that took longer than usual, or waiting. */
  const double slower = r->over_ms - r->over_wait_ms - r->run_p50_ms;
  if (slower > r->over_wait_ms) return HONE_LIMIT_TAIL;
  return r->busy >= loaded ? HONE_LIMIT_CAPACITY : HONE_LIMIT_BURSTS;
}

static void explain(hone_load_peak *p) {
  if (p->limit == HONE_LIMIT_NONE) {
    snprintf(p->text, sizeof p->text, "every rate that was tried is valid");
    return;
  }
  const hone_load_result *r = &p->trial[p->too_much];
  const double bound = (double)r->settings.bound_ns / 1e6, busy = 100 * r->busy;
  switch (p->limit) {
  case HONE_LIMIT_RUNS:
    snprintf(p->text, sizeof p->text, "a run alone takes %.3f ms (median), the bound is %g ms", r->run_p50_ms,
             bound);
    break;
  case HONE_LIMIT_TAIL:
    snprintf(p->text, sizeof p->text,
             "slow runs: late queries took %.3f ms and waited %.3f of them; runs take %.3f ms at the median, "
             "%.3f ms "
             "at the 99th percentile",
             r->over_ms, r->over_wait_ms, r->run_p50_ms, r->run_p99_ms);
    break;
  case HONE_LIMIT_CAPACITY:
    snprintf(p->text, sizeof p->text,
             "capacity: at %.4g a second all contexts (%u) are busy %.0f %% of the time; late queries waited "
             "%.3f of "
             "%.3f ms",
             r->settings.qps, r->in_flight, busy, r->over_wait_ms, r->over_ms);
    break;
  case HONE_LIMIT_BURSTS:
    snprintf(p->text, sizeof p->text,
             "bursts: at %.4g a second contexts (%u) are busy only %.0f %% of the time, but arrivals that "
             "come close "
             "together wait for each other, late ones %.3f of %.3f ms",
             r->settings.qps, r->in_flight, busy, r->over_wait_ms, r->over_ms);
    break;
  default: snprintf(p->text, sizeof p->text, "at %.4g a second %.300s", r->settings.qps, r->why); break;
  }
}

/* ---------------------------------------------------------------- the search */

static hone_status test(const hn_trials *trials, const hone_load_settings *s, double qps, hone_load_peak *p,
                        hone_error *error) {
  hone_load_settings at = *s;
  at.qps = qps;
  hone_load_result *r = &p->trial[p->n];
  const hone_status status = trials->test(trials->arg, &at, r, error);
  if (status != HONE_OK) return status;
  p->interrupted = r->interrupted;
  if (!r->interrupted) *(r->valid ? &p->best : &p->too_much) = (int32_t)p->n;
  p->n++;
  return HONE_OK;
}

/* Half of what contexts reach that are never without work. */
static hone_status guess(const hn_trials *trials, const hone_load_settings *s, double *qps, bool *interrupted,
                         hone_error *error) {
  hone_load_settings closed = *s;
  hone_load_result r;
  closed.scenario = HONE_SCENARIO_CLOSED;
  closed.min_queries = 16;
  if (closed.min_duration_ns > 1000000000u) closed.min_duration_ns = 1000000000u;
  const hone_status status = trials->test(trials->arg, &closed, &r, error);
  if (status != HONE_OK) return status;
  *interrupted = r.interrupted;
  *qps = r.rate > 0 && r.rate < 1e9 ? r.rate / 2 : 1;
  return HONE_OK;
}

/* The next rate; 0: found, or there is none. */
static double next_rate(const hone_load_peak *p, uint32_t steps) {
  const double least = p->best >= 0 ? p->trial[p->best].settings.qps : 0;
  const double most = p->too_much >= 0 ? p->trial[p->too_much].settings.qps : 0;
  if (p->best < 0) {
    const hone_load_result *r = &p->trial[p->too_much];
    const hone_load_limit limit = limit_of(r);
    if (limit == HONE_LIMIT_RUNS || limit == HONE_LIMIT_COUNT || r->busy < idle) return 0;
    return most / 2 >= HN_RATE_LEAST ? most / 2 : 0;
  }
  if (p->too_much < 0) return 2 * least <= most_rate ? 2 * least : 0;
  return (most - least) * steps > least ? least + (most - least) / 2 : 0;
}

hone_status hn_peak_search(const hn_trials *trials, const hone_load_settings *settings, uint32_t steps,
                           hone_load_peak *p, hone_error *error) {
  hone_load_settings s = *settings;
  /* Early stopping shall be able to forgive one late query. */
  const uint64_t least = 1 + hn_early_in_time(1, s.percentile);
  if (s.min_queries < least) s.min_queries = least;
  s.give_up = true;
  *p = (hone_load_peak){.best = -1, .too_much = -1, .trial = hn_calloc(HONE_LOAD_TRIALS, sizeof *p->trial)};
  if (!p->trial) return hn_fail_memory(error, HONE_LOAD_TRIALS * sizeof *p->trial, "the tests");
  hone_status status = HONE_OK;
  double qps = s.qps;
  if (!(qps > 0)) status = guess(trials, &s, &qps, &p->interrupted, error);
  while (status == HONE_OK && qps > 0 && p->n < HONE_LOAD_TRIALS && !p->interrupted) {
    status = test(trials, &s, qps, p, error);
    if (status == HONE_OK && !p->interrupted) qps = next_rate(p, steps ? steps : STEPS);
  }
  if (status != HONE_OK) {
    hone_load_peak_free(p);
    return status;
  }
  p->limit = p->too_much >= 0 ? limit_of(&p->trial[p->too_much]) : HONE_LIMIT_NONE;
  explain(p);
  return HONE_OK;
}

void hone_load_peak_free(hone_load_peak *p) {
  if (!p) return;
  hn_free(p->trial);
  *p = (hone_load_peak){0};
}

typedef struct plan_trials {
  const hone_load_target *target;
  const hone_watch *watch;
} plan_trials;

static hone_status test_plan(void *arg, const hone_load_settings *s, hone_load_result *out,
                             hone_error *error) {
  const plan_trials *t = arg;
  return hone_load_run(t->target, s, t->watch, out, error);
}

hone_status hone_load_peak_find(const hone_load_target *target, const hone_load_settings *s, uint32_t steps,
                                const hone_watch *watch, hone_load_peak *out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "there is no place for the result");
  *out = (hone_load_peak){.best = -1, .too_much = -1};
  hone_status status = hn_load_check(target, s, error);
  if (status != HONE_OK) return status;
  if (s->scenario != HONE_SCENARIO_SERVER)
    return hn_fail(error, HONE_ERROR_USAGE, "only the server scenario has a rate to search for");
  hone_load_settings rated = *s;
  if (!(s->qps > 0)) rated.qps = 1;
  status = hn_course_check(&rated, target->in_flight, target->rows, error);
  if (status != HONE_OK) return status;
  plan_trials arg = {target, watch};
  const hn_trials trials = {&arg, test_plan};
  return hn_peak_search(&trials, s, steps, out, error);
}
