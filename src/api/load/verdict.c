/* What came of a test: LoadGen's figures, and its rules for VALID. */
#include "api/load/course.h"
#include "api/load/early.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* As LoadGen takes it: no interpolation. Of no latencies NaN. */
static double at_ms(const hn_times *t, double share) {
  return t->n ? (double)t->ns[(size_t)((double)t->n * share)] / 1e6 : (double)NAN;
}

static double slowest_ms(const hn_times *t, uint64_t rank) {
  return rank && rank <= t->n ? (double)t->ns[t->n - rank] / 1e6 : (double)NAN;
}

static void figures(const hn_course *c, hone_load_result *r) {
  const hn_times *t = &c->latency;
  double sum = 0;
  for (size_t i = 0; i < t->n; i++) sum += (double)t->ns[i];
  r->mean_ms = sum / 1e6 / (double)t->n;
  r->min_ms = at_ms(t, 0);
  r->max_ms = slowest_ms(t, 1);
#define X(n) r->p##n##_ms = at_ms(t, n / 100.0);
  HONE_LOAD_PERCENTILES(X)
#undef X
  r->percentile_ms = at_ms(t, c->s.percentile);
  r->run_p50_ms = at_ms(&c->runs, 0.5);
  r->run_p99_ms = at_ms(&c->runs, 0.99);
  r->busy = (double)c->busy / ((double)c->last_done * c->in_flight);
  r->wait_ms = c->waited / 1e6 / (double)c->samples;
  r->over_wait_ms = c->over_waited / 1e6 / (double)c->over;
  r->over_ms = c->over_all / 1e6 / (double)c->over;
}

static void rates(const hn_course *c, hone_load_result *r) {
  r->seconds = (double)c->last_done / 1e9;
  r->scheduled_rate = (double)NAN;
  r->rate = (double)c->samples / r->seconds;
  if (c->s.scenario == HONE_SCENARIO_SINGLE) r->rate = 1e3 / r->mean_ms;
  if (c->s.scenario != HONE_SCENARIO_SERVER || c->samples < 2) return;
  r->rate = (double)(c->samples - 1) / ((double)c->final_done / 1e9);
  r->scheduled_rate = (double)(c->samples - 1) / ((double)c->issued_at / 1e9);
}

/* Single and multi stream want an estimate at all, the server that the late ones are few enough for so many.
 */
static void stop_early(const hn_course *c, hone_load_result *r) {
  r->early_ms = r->early_99_ms = (double)NAN;
  r->sure = true;
  if (c->s.scenario == HONE_SCENARIO_OFFLINE || c->s.scenario == HONE_SCENARIO_CLOSED) return;
  if (c->s.scenario == HONE_SCENARIO_SERVER) {
    r->early_queries = c->over + hn_early_in_time(c->over, c->s.percentile);
    r->sure = r->queries >= r->early_queries;
    return;
  }
  r->early_queries = 1 + hn_early_in_time(1, c->s.percentile);
  r->sure = r->queries >= r->early_queries;
  r->early_ms = slowest_ms(&c->latency, hn_early_late(r->queries, c->s.percentile));
  if (c->s.scenario == HONE_SCENARIO_SINGLE)
    r->early_99_ms = slowest_ms(&c->latency, hn_early_late(r->queries, 0.99));
}

static void judge(const hn_course *c, hone_load_result *r) {
  /* LoadGen looks at when the last query was due (server), was asked for, or (offline) how long it took. */
  const uint64_t lasted = c->s.scenario == HONE_SCENARIO_OFFLINE ? c->last_done : c->issued_at;
  const uint64_t count = c->s.scenario == HONE_SCENARIO_OFFLINE ? c->samples : r->queries;
  r->long_enough = r->queries && lasted >= c->s.min_duration_ns;
  r->enough_queries = count >= c->s.min_queries && (c->s.scenario != HONE_SCENARIO_OFFLINE || r->queries);
  r->fast_enough =
      c->s.scenario != HONE_SCENARIO_SERVER ||
      (c->latency.n && c->latency.ns[(size_t)((double)c->latency.n * c->s.percentile)] <= c->s.bound_ns);
  r->interrupted = c->interrupted;
  r->gave_up = c->gave_up;
  r->valid =
      r->long_enough && r->enough_queries && r->fast_enough && r->sure && !r->interrupted && !r->gave_up;
}

static void say(hone_load_result *r, const char *text) {
  const size_t n = strlen(r->why);
  snprintf(r->why + n, sizeof r->why - n, "%s%s", n ? "; " : "", text);
}

static void explain(const hn_course *c, hone_load_result *r) {
  char text[160];
  r->why[0] = 0;
  if (r->interrupted) say(r, "it was ended early");
  if (r->gave_up) {
    snprintf(text, sizeof text, "%llu queries took over %g ms, of all only %llu may: ended early",
             (unsigned long long)c->over, (double)c->s.bound_ns / 1e6, (unsigned long long)c->allowed);
    say(r, text);
    return;
  }
  if (!r->fast_enough) {
    snprintf(text, sizeof text, "the %gth percentile is %.3f ms, the bound %g ms", 100 * c->s.percentile,
             r->percentile_ms, (double)c->s.bound_ns / 1e6);
    say(r, text);
  }
  if (!r->long_enough) {
    snprintf(text, sizeof text, "it took less than %g s", (double)c->s.min_duration_ns / 1e9);
    say(r, text);
  }
  if (!r->enough_queries) {
    snprintf(text, sizeof text, "only %llu of at least %llu %s",
             (unsigned long long)(c->s.scenario == HONE_SCENARIO_OFFLINE ? r->samples : r->queries),
             (unsigned long long)c->s.min_queries,
             c->s.scenario == HONE_SCENARIO_OFFLINE ? "samples" : "queries");
    say(r, text);
  }
  if (!r->sure) {
    snprintf(text, sizeof text, "early stopping wants %llu queries with %llu late, not %llu",
             (unsigned long long)r->early_queries,
             (unsigned long long)(c->s.scenario == HONE_SCENARIO_SERVER ? c->over : 1),
             (unsigned long long)r->queries);
    say(r, text);
  }
}

void hn_course_result(hn_course *c, hone_load_result *r) {
  *r = (hone_load_result){.settings = c->s,
                          .in_flight = c->in_flight,
                          .rows = c->rows,
                          .queries = c->answered,
                          .samples = c->samples,
                          .over = c->over};
  if (c->latency.n) qsort(c->latency.ns, c->latency.n, sizeof *c->latency.ns, by_time);
  if (c->runs.n) qsort(c->runs.ns, c->runs.n, sizeof *c->runs.ns, by_time);
  figures(c, r);
  rates(c, r);
  stop_early(c, r);
  judge(c, r);
  explain(c, r);
}
