#include "api/load/course.h"
#include "api/load/early.h"

#include "base/error.h"

hone_status hn_taken_make(uint32_t rows, hn_taken *out, hone_error *error) {
  *out = (hn_taken){.sample = hn_calloc(rows, sizeof *out->sample), .due = hn_calloc(rows, sizeof *out->due)};
  if (out->sample && out->due) return HONE_OK;
  hn_taken_free(out);
  return hn_fail_memory(error, rows * sizeof *out->due, "the samples of a run");
}

void hn_taken_free(hn_taken *t) {
  hn_free(t->sample);
  hn_free(t->due);
  *t = (hn_taken){0};
}

hone_status hn_course_check(const hone_load_settings *s, uint32_t in_flight, uint32_t rows,
                            hone_error *error) {
  if (!hone_scenario_name(s->scenario)) return hn_fail(error, HONE_ERROR_USAGE, "there is no such scenario");
  if (!(s->percentile >= 0.5 && s->percentile <= 0.9999))
    return hn_fail(error, HONE_ERROR_USAGE, "the percentile must be from 0.5 to 0.9999, got %g",
                   s->percentile);
  const bool rated = s->scenario == HONE_SCENARIO_SERVER || s->scenario == HONE_SCENARIO_OFFLINE;
  if (rated && !(s->qps >= HN_RATE_LEAST && s->qps <= 1e9))
    return hn_fail(error, HONE_ERROR_USAGE, "the rate must be from %g to 1e9 a second, got %g", HN_RATE_LEAST,
                   s->qps);
  if (!s->samples || s->samples > 1u << 28 || !s->query_samples || s->query_samples > 1u << 20)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "a test wants 1 to 2^28 samples, and 1 to 2^20 a query, got %u and %u", s->samples,
                   s->query_samples);
  if (!s->min_queries || s->min_queries > 1u << 30 || s->min_duration_ns > (uint64_t)1e16)
    return hn_fail(error, HONE_ERROR_USAGE, "a test wants 1 to 2^30 queries and at most 1e7 s");
  if (rated && (double)s->min_duration_ns / 1e9 * s->qps > 1e9)
    return hn_fail(error, HONE_ERROR_USAGE, "%g s at %g a second are more than 1e9 samples",
                   (double)s->min_duration_ns / 1e9, s->qps);
  if (s->scenario == HONE_SCENARIO_SERVER && !s->bound_ns)
    return hn_fail(error, HONE_ERROR_USAGE, "the server scenario wants a bound of latency");
  if (!in_flight || in_flight > 1024 || !rows)
    return hn_fail(error, HONE_ERROR_USAGE, "a test wants 1 to 1024 contexts, got %u", in_flight);
  return HONE_OK;
}

/* As soon as more of n queries are late the one at the percentile is, or early stopping wants more queries.
 */
static uint64_t most_late(uint64_t n, double percentile) {
  const uint64_t behind = n - 1 - (uint64_t)((double)n * percentile), early = hn_early_late(n, percentile);
  return behind < early ? behind : early;
}

hone_status hn_course_open(const hone_load_settings *s, uint32_t in_flight, uint32_t rows, hn_course *out,
                           hone_error *error) {
  *out = (hn_course){.in_flight = in_flight, .rows = rows};
  hone_status status = hn_course_check(s, in_flight, rows, error);
  if (status != HONE_OK) return status;
  out->s = *s;
  uint64_t count = 0;
  if (s->give_up && s->scenario == HONE_SCENARIO_SERVER) status = hn_schedule_count(s, &count, error);
  if (status == HONE_OK) status = hn_schedule_open(&out->s, &out->schedule, error);
  out->allowed = count ? most_late(count, s->percentile) : UINT64_MAX;
  return status;
}

void hn_course_close(hn_course *c) {
  hn_schedule_close(&c->schedule);
  hn_free(c->latency.ns);
  hn_free(c->runs.ns);
  c->latency = c->runs = (hn_times){0};
}

/* ---------------------------------------------------------------- taking */

/* Whether the test ended by itself, or must. */
static bool ended(const hn_course *c, uint64_t now) {
  if (c->stopped || !hn_schedule_more(&c->schedule)) return true;
  if (!c->issued) return false;
  if (c->s.max_duration_ns && now > c->s.max_duration_ns) return true;
  return c->s.scenario != HONE_SCENARIO_SERVER && c->issued >= c->s.min_queries &&
         c->issued_at >= c->s.min_duration_ns;
}

static void put(hn_course *c, hn_taken *t, uint64_t k, uint64_t due) {
  t->sample[t->n] = hn_schedule_sample(&c->schedule, k);
  t->due[t->n++] = due;
  t->last = c->issued - 1;
  c->open++;
}

static void issue(hn_course *c, uint64_t at) {
  hn_schedule_next(&c->schedule);
  c->issued++;
  c->issued_at = at;
}

/* Whatever is due by now, one sample a query. */
static hn_take take_due(hn_course *c, uint64_t now, hn_taken *out, uint64_t *until) {
  while (out->n < c->rows && !ended(c, now) && c->schedule.at <= now) {
    const uint64_t due = c->schedule.at;
    issue(c, due);
    put(c, out, 0, due);
  }
  if (out->n) return HN_TAKE_RUN;
  if (ended(c, now)) return HN_TAKE_OVER;
  *until = c->schedule.at;
  return HN_TAKE_LATER;
}

/* Parts of one query; the next one when all of it is done. */
static hn_take take_part(hn_course *c, uint64_t now, hn_taken *out) {
  if (c->stopped) return HN_TAKE_OVER;
  if (!c->left && c->open) return HN_TAKE_WAIT;
  if (!c->left) {
    if (ended(c, now)) return HN_TAKE_OVER;
    issue(c, now);
    c->left = c->schedule.size;
  }
  for (; out->n < c->rows && c->left; c->left--) put(c, out, c->schedule.size - c->left, c->issued_at);
  return HN_TAKE_RUN;
}

static hn_take take_next(hn_course *c, uint64_t now, hn_taken *out) {
  while (out->n < c->rows && !ended(c, now)) {
    issue(c, now);
    put(c, out, 0, now);
  }
  return out->n ? HN_TAKE_RUN : HN_TAKE_OVER;
}

hn_take hn_course_take(hn_course *c, uint64_t now, hn_taken *out, uint64_t *until) {
  out->n = 0;
  out->at = now;
  switch (c->s.scenario) {
  case HONE_SCENARIO_SERVER: return take_due(c, now, out, until);
  case HONE_SCENARIO_CLOSED: return take_next(c, now, out);
  default: return take_part(c, now, out);
  }
}

/* ---------------------------------------------------------------- what became of it */

static bool keep(hn_times *t, uint64_t ns) {
  if (t->n == t->room) {
    const size_t room = t->room ? 2 * t->room : 1024;
    uint64_t *more = hn_realloc(t->ns, room * sizeof *more);
    if (!more) return false;
    t->ns = more;
    t->room = room;
  }
  t->ns[t->n++] = ns;
  return true;
}

static uint64_t since(uint64_t from, uint64_t now) { return now > from ? now - from : 0; }

static bool keep_sample(hn_course *c, uint64_t due, uint64_t at, uint64_t now) {
  const uint64_t latency = since(due, now), wait = since(due, at);
  if (c->s.scenario != HONE_SCENARIO_MULTI && !keep(&c->latency, latency)) return false;
  c->samples++;
  c->waited += (double)wait;
  if (c->s.scenario != HONE_SCENARIO_SERVER || latency <= c->s.bound_ns) return true;
  c->over++;
  c->over_waited += (double)wait;
  c->over_all += (double)latency;
  return true;
}

hone_status hn_course_done(hn_course *c, const hn_taken *t, uint64_t now, hone_error *error) {
  const bool parts = c->s.scenario == HONE_SCENARIO_MULTI || c->s.scenario == HONE_SCENARIO_OFFLINE;
  bool kept = keep(&c->runs, since(t->at, now));
  for (uint32_t i = 0; i < t->n && kept; i++) kept = keep_sample(c, t->due[i], t->at, now);
  c->open -= t->n;
  c->busy += since(t->at, now);
  if (now > c->last_done) c->last_done = now;
  if (t->last + 1 == c->issued) c->final_done = now;
  const bool whole = parts && !c->left && !c->open;
  c->answered += parts ? whole : t->n;
  if (kept && whole && c->s.scenario == HONE_SCENARIO_MULTI)
    kept = keep(&c->latency, since(c->issued_at, now));
  if (c->over > c->allowed) c->stopped = c->gave_up = true;
  return kept ? HONE_OK : hn_fail_memory(error, c->latency.room * 16, "latencies");
}
