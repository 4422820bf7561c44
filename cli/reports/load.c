#include "cli/reports/load.h"

#include "cli/terminal/term.h"

#include <math.h>

/* ---------------------------------------------------------------- JSON */

static void put(json_t *doc, const char *key, double v) { json_object_set_new(doc, key, cli_real(v)); }
static void put_count(json_t *doc, const char *key, uint64_t v) {
  json_object_set_new(doc, key, json_integer((json_int_t)v));
}
static void put_flag(json_t *doc, const char *key, bool v) { json_object_set_new(doc, key, json_boolean(v)); }

static json_t *seeds(const hone_load_settings *s) {
  /* Text: readers take numbers of JSON as doubles, which do not hold 64 bits. */
  char text[3][24];
  snprintf(text[0], sizeof text[0], "%llu", (unsigned long long)s->set_seed);
  snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)s->sample_seed);
  snprintf(text[2], sizeof text[2], "%llu", (unsigned long long)s->schedule_seed);
  return json_pack("[s, s, s]", text[0], text[1], text[2]);
}

static json_t *settings(const hone_load_settings *s) {
  const bool server = s->scenario == HONE_SCENARIO_SERVER;
  json_t *o = json_object();
  put(o, "percentile", s->scenario >= HONE_SCENARIO_OFFLINE ? (double)NAN : 100 * s->percentile);
  put(o, "min_duration_s", (double)s->min_duration_ns / 1e9);
  put_count(o, "min_queries", s->min_queries);
  put_count(o, "samples", s->samples);
  put(o, "query_samples", s->scenario == HONE_SCENARIO_MULTI ? s->query_samples : (double)NAN);
  put(o, "qps", server || s->scenario == HONE_SCENARIO_OFFLINE ? s->qps : (double)NAN);
  put(o, "latency_bound_ms", server ? (double)s->bound_ns / 1e6 : (double)NAN);
  json_object_set_new(o, "seeds", seeds(s));
  return o;
}

static json_t *checks(const hone_load_result *r) {
  json_t *o = json_object();
  put_flag(o, "min_duration", r->long_enough);
  put_flag(o, "min_queries", r->enough_queries);
  put_flag(o, "latency_bound", r->fast_enough);
  put_flag(o, "early_stopping", r->sure);
  return o;
}

static json_t *latencies(const hone_load_result *r) {
  json_t *o = json_object();
  put(o, "min", r->min_ms);
  put(o, "mean", r->mean_ms);
#define X(n) put(o, "p" #n, r->p##n##_ms);
  HONE_LOAD_PERCENTILES(X)
#undef X
  put(o, "max", r->max_ms);
  return o;
}

json_t *cli_load_json(const hone_load_result *r) {
  const bool server = r->settings.scenario == HONE_SCENARIO_SERVER;
  const bool judged = r->settings.scenario < HONE_SCENARIO_OFFLINE;
  json_t *o = json_object();
  json_object_set_new(o, "scenario", json_string(hone_scenario_name(r->settings.scenario)));
  json_object_set_new(o, "settings", settings(&r->settings));
  if (r->settings.scenario != HONE_SCENARIO_CLOSED) {
    put_flag(o, "valid", r->valid);
    json_object_set_new(o, "why", r->why[0] ? json_string(r->why) : json_null());
    json_object_set_new(o, "checks", checks(r));
  }
  put_flag(o, "ended_early", r->interrupted || r->gave_up);
  put_count(o, "in_flight", r->in_flight);
  put_count(o, "threads", r->threads);
  put_count(o, "rows", r->rows);
  put_count(o, "queries", r->queries);
  put_count(o, "samples", r->samples);
  put(o, "seconds", r->seconds);
  put(o, "rate", r->rate);
  put(o, "scheduled_rate", r->scheduled_rate);
  json_object_set_new(o, "latency_ms", latencies(r));
  put(o, "percentile_ms", judged ? r->percentile_ms : (double)NAN);
  put(o, "early_stopping_ms", r->early_ms);
  put(o, "early_stopping_99_ms", r->early_99_ms);
  put(o, "early_stopping_queries", judged ? (double)r->early_queries : (double)NAN);
  put(o, "over_bound", server ? (double)r->over : (double)NAN);
  put(o, "busy", r->busy);
  put(o, "run_p50_ms", r->run_p50_ms);
  put(o, "run_p99_ms", r->run_p99_ms);
  put(o, "wait_ms", server ? r->wait_ms : (double)NAN);
  put(o, "over_wait_ms", server && r->over ? r->over_wait_ms : (double)NAN);
  put(o, "over_ms", server && r->over ? r->over_ms : (double)NAN);
  return o;
}

json_t *cli_peak_json(const hone_load_peak *p) {
  static const char *const limit[] = {"none", "runs", "tail", "capacity", "bursts", "count"};
  json_t *o = json_object(), *trials = json_array();
  put(o, "qps", p->best >= 0 ? p->trial[p->best].settings.qps : (double)NAN);
  json_object_set_new(o, "best", p->best >= 0 ? json_integer(p->best) : json_null());
  json_object_set_new(o, "too_much", p->too_much >= 0 ? json_integer(p->too_much) : json_null());
  json_object_set_new(o, "limit", json_string(limit[p->limit]));
  json_object_set_new(o, "text", json_string(p->text));
  put_flag(o, "ended_early", p->interrupted);
  for (uint32_t i = 0; i < p->n; i++) json_array_append_new(trials, cli_load_json(&p->trial[i]));
  json_object_set_new(o, "trials", trials);
  return o;
}

json_t *cli_curve_json(const hone_load_result *points, uint32_t n) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) json_array_append_new(list, cli_load_json(&points[i]));
  return json_pack("{s:o, s:o}", "knee",
                   n ? json_integer(points[hone_load_knee(points, n)].in_flight) : json_null(), "points",
                   list);
}

/* ---------------------------------------------------------------- text */

static const char *verdict(const hone_load_result *r) { return r->valid ? "VALID" : "INVALID"; }

static void judged_text(const hone_load_result *r) {
  const hone_load_settings *s = &r->settings;
  if (s->scenario >= HONE_SCENARIO_OFFLINE) return;
  cli_print("judged      %gth percentile %.3f ms", 100 * s->percentile, r->percentile_ms);
  if (s->scenario == HONE_SCENARIO_SERVER)
    cli_print(", bound %g ms; %llu of %llu queries over it", (double)s->bound_ns / 1e6,
              (unsigned long long)r->over, (unsigned long long)r->queries);
  else if (isfinite(r->early_ms))
    cli_print("; early stopping estimates %.3f ms", r->early_ms);
  if (isfinite(r->early_99_ms)) cli_print(", of the 99th %.3f ms", r->early_99_ms);
  cli_print("\n");
}

static void rate_text(const hone_load_result *r) {
  cli_print("throughput  %.1f samples a second", r->rate);
  if (isfinite(r->scheduled_rate)) cli_print(" (%.1f were asked for)", r->scheduled_rate);
  cli_print("\n");
}

static void runs_text(const hone_load_result *r) {
  cli_print("runs        %u in flight, busy %.0f %% of the time; a run takes %.3f ms (median), %.3f (p99)",
            r->in_flight, 100 * r->busy, r->run_p50_ms, r->run_p99_ms);
  if (r->threads) cli_print(", %u thread%s each", r->threads, r->threads == 1 ? "" : "s");
  if (r->rows > 1) cli_print(", up to %u samples", r->rows);
  if (r->settings.scenario == HONE_SCENARIO_SERVER) cli_print("; queries wait %.3f ms (mean)", r->wait_ms);
  cli_print("\n");
}

void cli_load_text(const hone_load_result *r) {
  cli_print("result      %s%s%s\n", verdict(r), r->why[0] ? ": " : "", r->why);
  judged_text(r);
  cli_print("latency     min %.3f ms   mean %.3f   p50 %.3f   p90 %.3f   p99 %.3f   max %.3f\n", r->min_ms,
            r->mean_ms, r->p50_ms, r->p90_ms, r->p99_ms, r->max_ms);
  rate_text(r);
  runs_text(r);
  cli_print("queries     %llu of %llu sample%s in %.2f s; %u different ones\n",
            (unsigned long long)r->queries, (unsigned long long)r->samples, cli_s(r->samples), r->seconds,
            r->settings.samples);
}

void cli_peak_text(const hone_load_peak *p) {
  if (p->n) cli_print("   asked/s  answered/s    judged ms   over  busy %%  result\n");
  for (uint32_t i = 0; i < p->n; i++) {
    const hone_load_result *r = &p->trial[i];
    cli_print("%10.2f  %10.2f  %11.3f  %5llu  %6.0f  %s%s\n", r->settings.qps, r->rate, r->percentile_ms,
              (unsigned long long)r->over, 100 * r->busy, verdict(r),
              r->gave_up || r->interrupted ? " (ended early)" : "");
  }
  if (p->best < 0) {
    cli_print("highest     no rate that was tried is VALID\n");
  } else {
    const hone_load_result *r = &p->trial[p->best];
    cli_print("highest     %.2f queries a second VALID: %gth percentile %.3f ms, bound %g ms\n",
              r->settings.qps, 100 * r->settings.percentile, r->percentile_ms,
              (double)r->settings.bound_ns / 1e6);
  }
  if (p->text[0]) cli_print("limit       %s\n", p->text);
}

void cli_curve_text(const hone_load_result *points, uint32_t n) {
  if (n) cli_print("in flight  samples/s    p50 ms    p90 ms    p99 ms  busy %%\n");
  for (uint32_t i = 0; i < n; i++) {
    const hone_load_result *r = &points[i];
    cli_print("%9u %10.1f %9.3f %9.3f %9.3f %7.0f\n", r->in_flight, r->rate, r->p50_ms, r->p90_ms, r->p99_ms,
              100 * r->busy);
  }
  if (!n) return;
  const uint32_t knee = hone_load_knee(points, n);
  cli_print("most pays   %u in flight: %.1f samples a second, %.2f times one; more adds less than 5 %%\n",
            points[knee].in_flight, points[knee].rate, points[knee].rate / points[0].rate);
}
