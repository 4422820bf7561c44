/* report.json: a flat summary first, then everything behind it. */
#include "insight/report/report.h"

#include "insight/facts_write.h"
#include "insight/json.h"

#include <hone/version.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void write_machine(hn_str *o, const hone_profile *p) {
  static const hn_json_member list[] = {HN_JSON(hone_facts_meta, device),
                                        HN_JSON(hone_facts_meta, backend),
                                        HN_JSON(hone_facts_meta, isa),
                                        HN_JSON(hone_facts_meta, os),
                                        HN_JSON(hone_facts_meta, threads),
                                        HN_JSON(hone_facts_meta, cores),
                                        {0}};
  hn_json_open(o, "machine", '{');
  hn_json_members(o, list, hone_facts_get_meta(p->facts));
  hn_facts_write_table(o, p->facts, HN_FACTS_roofs);
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_sampling(hn_str *o, const hone_profile *p) {
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  hn_json_open(o, "sampling", '{');
  hn_json_num(o, "warmups", m->warmups);
  hn_json_num(o, "runs", m->runs);
  hn_json_uint(o, "iterations", p->iterations);
  hn_json_bool(o, "interrupted", m->interrupted != 0);
  hn_json_num(o, "seed", m->seed);
  hn_json_num(o, "cv", p->wall.cv);
  hn_json_num(o, "timer_overhead_ns", m->timer_overhead_ns);
  hn_json_num(o, "dropped_spans", m->dropped_spans);
  hn_json_text(o, "outer_clock", m->outer_clock);
  hn_json_text(o, "inner_clock", m->inner_clock);
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_notes(hn_str *o, const hone_profile *p) {
  static const hn_json_member list[] = {
      HN_JSON(hone_note, what), HN_JSON_AS(hone_note, "why", text, HN_JSON_ALWAYS), {0}};
  size_t n;
  const hone_note *versions = hone_facts_versions(p->facts, &n);
  hn_json_open(o, "versions", '{');
  for (size_t i = 0; i < n; i++) hn_json_text(o, versions[i].what ? versions[i].what : "?", versions[i].text);
  hn_json_close(o, '}');
  const hone_note *missing = hone_facts_unmeasured(p->facts, &n);
  hn_json_objects(o, "not_measured", list, missing, n, sizeof *missing);
}

static bool has_kind(const hone_profile *p, hone_span_kind kind) {
  size_t n;
  const hone_span *spans = hone_facts_spans(p->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (spans[i].kind == kind && spans[i].iteration >= 0) return true;
  const hone_step_stats *stats = hone_facts_step_stats(p->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (stats[i].kind == kind) return true;
  return false;
}

/* Why copies to the device are not known; NULL: they are. hone's own record adds up to an outer clock, so
 * what it does not hold has not been; to a processor nothing is copied. */
static const char *h2d_unmeasured(const hone_profile *p) {
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  const bool own = m->tool && strcmp(m->tool, "hone") == 0,
             cpu = m->backend && strcasecmp(m->backend, "cpu") == 0;
  return own || cpu || has_kind(p, HONE_SPAN_COPY_H2D)
             ? NULL
             : "not measured: the record holds no copies to the device";
}

/* A share of T_total, or null and why. */
static void write_ratio(hn_str *o, const hone_profile *p, const char *key, double ms, const char *why) {
  char reason[64];
  if (!why && p->stages.total_ms <= 0) why = "not measured: nothing was timed";
  if (!why) {
    hn_json_num(o, key, ms / p->stages.total_ms);
    return;
  }
  hn_json_null(o, key);
  snprintf(reason, sizeof reason, "%s_reason", key);
  hn_json_text(o, reason, why);
}

/* Figures under the names that `hone bench` gives them as well. */
static void write_summary(hn_str *o, const hone_profile *p) {
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  const hone_stages *s = &p->stages;
  hn_json_text(o, "commit", m->commit);
  hn_json_text(o, "model", m->model);
  hn_json_num(o, "batch", m->batch);
  hn_json_num(o, "avg_latency_ms", p->wall.mean);
  hn_json_num(o, "p95_latency_ms", p->wall.p95);
  hn_json_num(o, "throughput_fps", p->throughput.measured_fps);
  write_ratio(o, p, "h2d_ms_ratio", s->h2d_ms, h2d_unmeasured(p));
  write_ratio(
      o, p, "post_ms_ratio", s->post_ms,
      has_kind(p, HONE_SPAN_POST)
          ? NULL
          : "not measured: no post-processing was part of the record (hone_context_stage_begin marks it)");
  const char *source;
  uint64_t peak = hn_report_memory_peak(p, &source);
  if (peak)
    hn_json_num(o, "memory_peak_mb", (double)peak / (1024 * 1024));
  else
    hn_json_null(o, "memory_peak_mb");
  hn_json_text(o, "memory_peak_source", peak ? source : "not measured");
  const double rss = (double)hone_facts_get_memory(p->facts)->rss_peak;
  if (rss > 0)
    hn_json_num(o, "host_rss_peak_mb", rss / (1024 * 1024));
  else
    hn_json_null(o, "host_rss_peak_mb");
  double low, high;
  if (hn_report_counter(p, "temperature_c_min", &low) && hn_report_counter(p, "temperature_c_max", &high)) {
    hn_json_open(o, "temperature_c_range", '[');
    hn_json_num(o, NULL, low);
    hn_json_num(o, NULL, high);
    hn_json_close(o, ']');
  } else {
    hn_json_null(o, "temperature_c_range");
    hn_json_text(o, "temperature_c_range_reason",
                 "not measured: no temperature was recorded on this machine");
  }
  hn_json_text(o, "profiling_date", m->date);
  hn_json_text(o, "tool", m->tool);
  hn_json_text(o, "tool_version", m->tool_version);
  hn_json_text(o, "hone_version", m->hone_version ? m->hone_version : hone_version());
  hn_json_text(o, "precision", m->precision);
  hn_json_num(o, "opt_level", m->opt_level);
  hn_json_text(o, "flags", m->flags);
  hn_json_line(o);
}

static void write_graph(hn_str *o, const hone_profile *p) {
  size_t steps, nodes, n;
  hone_facts_steps(p->facts, &steps);
  const hone_node_fact *node = hone_facts_nodes(p->facts, &nodes);
  size_t fates[HONE_NODE_FATE_COUNT] = {0};
  for (size_t i = 0; i < nodes; i++) fates[node[i].fate]++;
  hn_json_open(o, "graph", '{');
  hn_json_uint(o, "onnx_nodes", nodes);
  hn_json_uint(o, "steps", steps);
  hn_json_open(o, "fates", '{');
  for (int i = 0; i < HONE_NODE_FATE_COUNT; i++)
    if (fates[i]) hn_json_uint(o, hone_node_fate_name((hone_node_fate)i), fates[i]);
  hn_json_close(o, '}');
  const hone_pass_fact *passes = hone_facts_passes(p->facts, &n);
  hn_json_open(o, "passes", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", passes[i].name);
    hn_json_uint(o, "hits", passes[i].hits);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_close(o, '}');
  hn_json_line(o);
}

/* Spans of the typical iteration, times in microseconds from its start. */
static void write_spans(hn_str *o, const hone_profile *p) {
  enum { MOST = 20000 }; /* more than a page can draw */
  int32_t iteration = hn_report_typical_iteration(p);
  size_t n, written = 0, steps;
  const hone_span *spans = hone_facts_spans(p->facts, &n);
  const hone_step_fact *step = hone_facts_steps(p->facts, &steps);
  int64_t origin = INT64_MAX;
  for (size_t i = 0; i < n; i++)
    if (spans[i].iteration == iteration && spans[i].start_ns < origin) origin = spans[i].start_ns;
  hn_json_open(o, "spans", '[');
  for (size_t i = 0; i < n && written < MOST; i++) {
    const hone_span *s = &spans[i];
    if (s->iteration != iteration) continue;
    const hone_step_fact *of = s->step >= 0 ? &step[s->step] : NULL;
    written++;
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", s->name ? s->name : of ? of->name : NULL);
    hn_json_text(o, "type", s->op_type ? s->op_type : of ? of->op_type : NULL);
    hn_json_text(o, "kind", hone_span_kind_name(s->kind));
    hn_json_int(o, "lane", s->lane);
    hn_json_num(o, "start_us", (double)(s->start_ns - origin) / 1e3);
    hn_json_num(o, "dur_us", (double)(s->end_ns - s->start_ns) / 1e3);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
  hn_facts_write_table(o, p->facts, HN_FACTS_lanes);
}

static void write_memory_samples(hn_str *o, const hone_profile *p) {
  enum { MOST = 4000 };
  size_t n;
  const hone_memory_sample *s = hone_facts_memory_samples(p->facts, &n);
  size_t every = n / MOST + 1;
  hn_json_open(o, "memory_samples", '[');
  for (size_t i = 0; i < n; i += every) {
    hn_json_open(o, NULL, '{');
    hn_json_num(o, "t_us", (double)(s[i].time_ns - s[0].time_ns) / 1e3);
    hn_json_uint(o, "planned", s[i].planned_bytes);
    if (s[i].rss_bytes) hn_json_uint(o, "rss", s[i].rss_bytes);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_profile(hn_str *o, const char *key, const hone_profile *p, bool page) {
  if (!p) {
    hn_json_null(o, key);
    return;
  }
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  hn_json_open(o, key, '{');
  hn_json_num(o, "opt_level", m->opt_level);
  hn_json_text(o, "precision", m->precision);
  hn_json_num(o, "threads", m->threads);
  hn_json_num(o, "load_ms", m->load_ms);
  write_sampling(o, p);
  write_graph(o, p);
  hn_facts_write_table(o, p->facts, HN_FACTS_memory);
  hn_members_derived(o, p);
  if (page) {
    write_spans(o, p);
    write_memory_samples(o, p);
  }
  hn_json_close(o, '}');
  hn_json_line(o);
}

/* Another tool's record of the network, which is what runs today. */
static void write_today(hn_str *o, const hone_report_input *in) {
  if (!in->today) {
    hn_json_null(o, "today");
    return;
  }
  const hone_facts_meta *m = hone_facts_get_meta(in->today->facts);
  const double after = in->optimized->wall.p50;
  hn_json_open(o, "today", '{');
  hn_json_text(o, "tool", m->tool);
  hn_json_text(o, "tool_version", m->tool_version);
  hn_json_num(o, "ms", in->today->wall.p50);
  hn_json_num(o, "speedup", after > 0 ? in->today->wall.p50 / after : 0);
  hn_json_close(o, '}');
}

static void write_before_after(hn_str *o, const hone_report_input *in) {
  if (!in->optimized) {
    hn_json_null(o, "before_after");
    return;
  }
  double speedup = hn_report_speedup(in);
  hn_json_open(o, "before_after", '{');
  hn_json_num(o, "before_ms", in->baseline->wall.p50);
  hn_json_num(o, "after_ms", in->optimized->wall.p50);
  hn_json_num(o, "speedup", speedup);
  hn_json_num(o, "measured_gain_pct", speedup > 0 ? 100 * (speedup - 1) : 0);
  if (in->has_prediction)
    hn_json_num(o, "predicted_gain_pct", in->predicted_gain_pct);
  else
    hn_json_null(o, "predicted_gain_pct");
  write_today(o, in);
  hn_json_close(o, '}');
  hn_json_line(o);
}

/* What was promised, when, and from what. */
static void write_prediction(hn_str *o, const hone_report_input *in) {
  if (!in->has_prediction) {
    hn_json_null(o, "prediction");
    return;
  }
  hn_json_open(o, "prediction", '{');
  hn_json_text(o, "made", in->prediction_made);
  hn_json_text(o, "basis", in->prediction_basis ? in->prediction_basis : "the sum of the findings");
  hn_json_num(o, "gain_pct", in->predicted_gain_pct);
  if (in->predicted_after_ms > 0)
    hn_json_num(o, "after_ms", in->predicted_after_ms);
  else
    hn_json_null(o, "after_ms");
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_verification(hn_str *o, const hone_report_verdict *v) {
  static const hn_json_member list[] = {
      HN_JSON(hone_report_verdict, verdict),   HN_JSON(hone_report_verdict, inputs),
      HN_JSON(hone_report_verdict, max_abs),   HN_JSON(hone_report_verdict, max_rel),
      HN_JSON(hone_report_verdict, tolerance), HN_JSON(hone_report_verdict, first_different_node),
      HN_JSON(hone_report_verdict, note),      {0}};
  if (!v) {
    hn_json_null(o, "verification");
    return;
  }
  hn_json_object(o, "verification", list, v);
}

void hn_members_report(hn_str *o, const hone_report_input *in, bool page) {
  const hone_profile *now = hn_report_current(in);
  hn_json_open(o, NULL, '{');
  hn_json_line(o);
  hn_json_text(o, "schema", "hone report");
  hn_json_int(o, "version", 1);
  hn_json_text(o, "title", hn_report_title(in));
  write_summary(o, now);
  write_machine(o, now);
  write_notes(o, now);
  write_before_after(o, in);
  write_prediction(o, in);
  write_verification(o, in->verification);
  hn_members_findings(o, hn_report_language(in), in->findings);
  hn_members_findings_as(o, "left", in->left);
  hn_comparison_members(o, in->comparison);
  write_profile(o, "baseline", in->baseline, page);
  write_profile(o, "optimized", in->optimized, page);
  hn_json_close(o, '}');
  hn_json_line(o);
}

hone_status hn_report_json(const hone_report_input *in, hn_str *out, hone_error *error) {
  (void)error;
  hn_members_report(out, in, false);
  return HONE_OK;
}

hone_status hn_report_profile_json(const hone_report_input *in, hn_str *out, hone_error *error) {
  (void)error;
  const hone_profile *p = hn_report_current(in);
  hn_json_open(out, NULL, '{');
  hn_json_line(out);
  hn_facts_write_members(out, p->facts);
  hn_members_derived(out, p);
  if (in->findings) hn_members_findings(out, hn_report_language(in), in->findings);
  hn_json_close(out, '}');
  hn_json_line(out);
  return HONE_OK;
}

hone_status hn_report_findings_json(const hone_report_input *in, hn_str *out, hone_error *error) {
  (void)error;
  hn_json_open(out, NULL, '{');
  hn_json_text(out, "schema", "hone findings");
  hn_json_int(out, "version", 1);
  hn_json_text(out, "model", hone_facts_get_meta(in->baseline->facts)->model);
  if (in->has_prediction) write_prediction(out, in);
  hn_members_findings(out, hn_report_language(in), in->findings);
  hn_json_close(out, '}');
  hn_json_line(out);
  return HONE_OK;
}
