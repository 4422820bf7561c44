/* facts v1 -> JSON. Members that say nothing (NULL, 0, -1) are left out; the reader puts the same defaults
 * back. */
#include "insight/facts_write.h"

#include "base/error.h"
#include "insight/json.h"

static void text(hn_str *o, const char *key, const char *value) {
  if (value) hn_json_text(o, key, value);
}
static void count(hn_str *o, const char *key, uint64_t value) {
  if (value) hn_json_uint(o, key, value);
}
static void index_of(hn_str *o, const char *key, int32_t value) {
  if (value != -1) hn_json_int(o, key, value);
}
static void indices(hn_str *o, const char *key, const int32_t *values, size_t n) {
  if (!n) return;
  hn_json_open(o, key, '[');
  for (size_t i = 0; i < n; i++) hn_json_int(o, NULL, values[i]);
  hn_json_close(o, ']');
}

static void write_meta(hn_str *o, const hone_facts_meta *m) {
  hn_json_open(o, "meta", '{');
#define X(field) text(o, #field, m->field);
  HONE_META_TEXTS(X)
#undef X
#define X(field) hn_json_num(o, #field, m->field);
  HONE_META_NUMBERS(X)
#undef X
  hn_json_close(o, '}');
  hn_json_line(o);
}

void hn_facts_write_memory(hn_str *o, const hone_facts *f) {
  static const hn_json_member list[] = {
      HN_JSON_AS(hone_memory_facts, "predicted_peak_bytes", predicted_peak, HN_JSON_ALWAYS),
      HN_JSON_AS(hone_memory_facts, "actual_peak_bytes", actual_peak, HN_JSON_ALWAYS),
      HN_JSON_AS(hone_memory_facts, "naive_sum_bytes", naive_sum, HN_JSON_ALWAYS),
      HN_JSON_AS(hone_memory_facts, "weight_bytes", weights, HN_JSON_ALWAYS),
      HN_JSON_AS(hone_memory_facts, "rss_peak_bytes", rss_peak, HN_JSON_ALWAYS),
      HN_JSON_AS(hone_memory_facts, "device_peak_bytes", device_peak, HN_JSON_UNLESS_ZERO),
      {0}};
  hn_json_object(o, "memory", list, hone_facts_get_memory(f));
}

static void write_notes(hn_str *o, const char *key, const char *text_key, const hone_note *notes, size_t n) {
  const hn_json_member list[] = {
      HN_JSON_SET(hone_note, what), HN_JSON_AS(hone_note, text_key, text, HN_JSON_UNLESS_ZERO), {0}};
  hn_json_objects(o, key, list, notes, n, sizeof *notes);
}

/* A table of the facts: its rows, as the getter `rows` gives them. */
#define WRITE_TABLE(o, key, list, rows, f)                                                                   \
  do {                                                                                                       \
    size_t n_rows;                                                                                           \
    const void *first = rows(f, &n_rows);                                                                    \
    hn_json_objects(o, key, list, first, n_rows, sizeof *rows(f, &n_rows));                                  \
  } while (0)

void hn_facts_write_roofs(hn_str *o, const hone_facts *f) {
  static const hn_json_member list[] = {HN_JSON_SET(hone_roof, name),           HN_JSON(hone_roof, threads),
                                        HN_JSON_SET(hone_roof, gflops),         HN_JSON_SET(hone_roof, gbs),
                                        HN_JSON_SET(hone_roof, capacity_bytes), {0}};
  WRITE_TABLE(o, "roofs", list, hone_facts_roofs, f);
}

void hn_facts_write_lanes(hn_str *o, const hone_facts *f) {
  static const hn_json_member list[] = {HN_JSON(hone_lane, lane), HN_JSON_SET(hone_lane, name), {0}};
  WRITE_TABLE(o, "lanes", list, hone_facts_lanes, f);
}

static void write_step(hn_str *o, const hone_step_fact *s) {
  static const hn_json_member list[] = {
      HN_JSON_SET(hone_step_fact, name),           HN_JSON_SET(hone_step_fact, op_type),
      HN_JSON_SET(hone_step_fact, tactic),         HN_JSON_SET(hone_step_fact, epilogue),
      HN_JSON_SET(hone_step_fact, dtype),          HN_JSON_SET(hone_step_fact, shape_in),
      HN_JSON_SET(hone_step_fact, shape_out),      HN_JSON_SET(hone_step_fact, layout),
      HN_JSON_SET(hone_step_fact, flops),          HN_JSON_SET(hone_step_fact, bytes),
      HN_JSON_SET(hone_step_fact, executed_flops), HN_JSON_SET(hone_step_fact, arithmetic),
      HN_JSON_SET(hone_step_fact, weight_bytes),   HN_JSON_SET(hone_step_fact, predicted_ms),
      HN_JSON_SET(hone_step_fact, is_reference),   HN_JSON_SET(hone_step_fact, is_reformat),
      HN_JSON_SET(hone_step_fact, on_host),        HN_JSON_SET(hone_step_fact, is_launch),
      HN_JSON_SET(hone_step_fact, channels_in),    HN_JSON_SET(hone_step_fact, channels_out),
      HN_JSON_INDEX(hone_step_fact, anchor_node),  {0}};
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_members(o, list, s);
  indices(o, "nodes", s->nodes, s->node_count);
  if (s->alternative_count) {
    hn_json_open(o, "alternatives", '[');
    for (size_t i = 0; i < s->alternative_count; i++) {
      const hone_alternative *a = &s->alternatives[i];
      hn_json_open(o, NULL, '{');
      text(o, "tactic", a->tactic);
      text(o, "reason", a->reason);
      if (a->time_ms >= 0) hn_json_num(o, "time_ms", a->time_ms);
      hn_json_close(o, '}');
    }
    hn_json_close(o, ']');
  }
  hn_json_close(o, '}');
}

static void write_graph(hn_str *o, const hone_facts *f) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(f, &n);
  hn_json_open(o, "steps", '[');
  for (size_t i = 0; i < n; i++) write_step(o, &steps[i]);
  hn_json_close(o, ']');
  hn_json_line(o);

  const hone_node_fact *nodes = hone_facts_nodes(f, &n);
  hn_json_open(o, "nodes", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    text(o, "name", nodes[i].name);
    text(o, "op_type", nodes[i].op_type);
    hn_json_text(o, "fate", hone_node_fate_name(nodes[i].fate));
    index_of(o, "step", nodes[i].step);
    text(o, "reason", nodes[i].reason);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);

  static const hn_json_member pass[] = {HN_JSON_SET(hone_pass_fact, name),
                                        HN_JSON(hone_pass_fact, level),
                                        HN_JSON(hone_pass_fact, hits),
                                        HN_JSON(hone_pass_fact, time_ms),
                                        {0}};
  WRITE_TABLE(o, "passes", pass, hone_facts_passes, f);

  const hone_near_miss *misses = hone_facts_near_misses(f, &n);
  hn_json_open(o, "near_misses", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    text(o, "pass", misses[i].pass);
    text(o, "reason", misses[i].reason);
    indices(o, "nodes", misses[i].nodes, misses[i].node_count);
    count(o, "bytes_saved", misses[i].bytes_saved);
    index_of(o, "enable_level", misses[i].enable_level);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_preview(hn_str *o, const hone_facts *f) {
  static const hn_json_member list[] = {HN_JSON(hone_preview_step, level),
                                        HN_JSON_SET(hone_preview_step, name),
                                        HN_JSON_SET(hone_preview_step, op_type),
                                        HN_JSON_SET(hone_preview_step, tactic),
                                        HN_JSON_SET(hone_preview_step, epilogue),
                                        HN_JSON(hone_preview_step, predicted_ms),
                                        HN_JSON_SET(hone_preview_step, timed_ms),
                                        HN_JSON_SET(hone_preview_step, scaled_ms),
                                        HN_JSON_INDEX(hone_preview_step, anchor_node),
                                        {0}};
  size_t n;
  const hone_preview_step *steps = hone_facts_preview_steps(f, &n);
  if (!n) return;
  hn_json_open(o, "preview_steps", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_members(o, list, &steps[i]);
    indices(o, "nodes", steps[i].nodes, steps[i].node_count);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_spans(hn_str *o, const hone_facts *f) {
  static const hn_json_member rest[] = {HN_JSON(hone_span, lane),
                                        HN_JSON(hone_span, start_ns),
                                        HN_JSON(hone_span, end_ns),
                                        HN_JSON_INDEX(hone_span, iteration),
                                        HN_JSON_INDEX(hone_span, step),
                                        HN_JSON_SET(hone_span, name),
                                        HN_JSON_SET(hone_span, op_type),
                                        HN_JSON_SET(hone_span, tactic),
                                        HN_JSON_SET(hone_span, bytes),
                                        HN_JSON_SET(hone_span, flops),
                                        HN_JSON_SET(hone_span, correlation),
                                        HN_JSON_SET(hone_span, launch),
                                        {0}};
  size_t n;
  const hone_span *spans = hone_facts_spans(f, &n);
  hn_json_open(o, "spans", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_uint(o, "id", spans[i].id);
    count(o, "parent", spans[i].parent);
    hn_json_text(o, "kind", hone_span_kind_name(spans[i].kind));
    hn_json_members(o, rest, &spans[i]);
    if (spans[i].source_memory)
      hn_json_text(o, "source_memory", hone_memory_kind_name(spans[i].source_memory));
    if (spans[i].target_memory)
      hn_json_text(o, "target_memory", hone_memory_kind_name(spans[i].target_memory));
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_stats(hn_str *o, const hone_facts *f) {
  static const hn_json_member list[] = {
      HN_JSON(hone_step_stats, step),          HN_JSON(hone_step_stats, count),
      HN_JSON(hone_step_stats, runs),          HN_JSON(hone_step_stats, total_ms),
      HN_JSON_SET(hone_step_stats, median_ms), HN_JSON_SET(hone_step_stats, min_ms),
      HN_JSON_SET(hone_step_stats, max_ms),    {0}};
  size_t n;
  const hone_step_stats *stats = hone_facts_step_stats(f, &n);
  hn_json_open(o, "step_stats", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "kind", hone_span_kind_name(stats[i].kind));
    hn_json_members(o, list, &stats[i]);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_samples(hn_str *o, const hone_facts *f) {
  static const hn_json_member slow[] = {HN_JSON(hone_slow_run, time_s),
                                        HN_JSON(hone_slow_run, wall_ms),
                                        HN_JSON(hone_slow_run, usual_ms),
                                        HN_JSON_SET(hone_slow_run, step),
                                        HN_JSON_SET(hone_slow_run, pause_before),
                                        HN_JSON_SET(hone_slow_run, part_ms),
                                        HN_JSON_SET(hone_slow_run, part_usual_ms),
                                        HN_JSON(hone_slow_run, involuntary_switches),
                                        HN_JSON(hone_slow_run, minor_faults),
                                        HN_JSON(hone_slow_run, major_faults),
                                        HN_JSON(hone_slow_run, clock_mhz),
                                        HN_JSON(hone_slow_run, usual_clock_mhz),
                                        HN_JSON(hone_slow_run, others_pct),
                                        HN_JSON(hone_slow_run, throttles),
                                        {0}};
  static const hn_json_member wall[] = {HN_JSON(hone_wall, iteration), HN_JSON(hone_wall, wall_ns), {0}},
                              memory[] = {HN_JSON(hone_memory_sample, time_ns),
                                          HN_JSON(hone_memory_sample, planned_bytes),
                                          HN_JSON_SET(hone_memory_sample, rss_bytes),
                                          {0}},
                              counter[] = {HN_JSON_SET(hone_counter, name),
                                           HN_JSON_SET(hone_counter, unit),
                                           HN_JSON_INDEX(hone_counter, step),
                                           HN_JSON(hone_counter, value),
                                           {0}};
  static const hn_json_member launch[] = {HN_JSON(hone_launch, grid_x),
                                          HN_JSON(hone_launch, grid_y),
                                          HN_JSON(hone_launch, grid_z),
                                          HN_JSON(hone_launch, block_x),
                                          HN_JSON(hone_launch, block_y),
                                          HN_JSON(hone_launch, block_z),
                                          HN_JSON_SET(hone_launch, registers),
                                          HN_JSON_SET(hone_launch, static_shared),
                                          HN_JSON_SET(hone_launch, dynamic_shared),
                                          HN_JSON_SET(hone_launch, occupancy_pct),
                                          {0}};
  WRITE_TABLE(o, "launches", launch, hone_facts_launches, f);
  write_stats(o, f);
  WRITE_TABLE(o, "walls", wall, hone_facts_walls, f);
  WRITE_TABLE(o, "memory_samples", memory, hone_facts_memory_samples, f);
  WRITE_TABLE(o, "counters", counter, hone_facts_counters, f);
  size_t slow_runs;
  hone_facts_slow_runs(f, &slow_runs);
  if (slow_runs) WRITE_TABLE(o, "slow_runs", slow, hone_facts_slow_runs, f);
}

void hn_facts_write_members(hn_str *o, const hone_facts *f) {
  size_t n;
  hn_json_text(o, "schema", "hone facts");
  hn_json_int(o, "version", HONE_FACTS_VERSION);
  hn_json_line(o);
  write_meta(o, hone_facts_get_meta(f));
  hn_facts_write_memory(o, f);
  const hone_note *versions = hone_facts_versions(f, &n);
  write_notes(o, "versions", "version", versions, n);
  const hone_note *unmeasured = hone_facts_unmeasured(f, &n);
  write_notes(o, "not_measured", "why", unmeasured, n);
  const hone_note *options = hone_facts_options(f, &n);
  write_notes(o, "options", "value", options, n);
  hn_facts_write_roofs(o, f);
  write_graph(o, f);
  write_preview(o, f);
  hn_facts_write_lanes(o, f);
  write_spans(o, f);
  write_samples(o, f);
}

hone_status hone_facts_to_json(const hone_facts *f, char **out, size_t *length, hone_error *error) {
  if (!f || !out || !length)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_to_json: f, out and length may not be NULL");
  *out = NULL;
  *length = 0;
  hone_status status = hone_facts_check(f, error);
  if (status) return status;
  hn_str text_out = {0};
  hn_json_open(&text_out, NULL, '{');
  hn_json_line(&text_out);
  hn_facts_write_members(&text_out, f);
  hn_json_close(&text_out, '}');
  hn_json_line(&text_out);
  if (text_out.failed) {
    size_t wanted = text_out.len;
    hn_str_free(&text_out);
    return hn_fail_memory(error, wanted, "the JSON text of the facts");
  }
  *out = text_out.ptr;
  *length = text_out.len;
  return HONE_OK;
}
