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
static void number(hn_str *o, const char *key, double value) {
  if (value != 0) hn_json_num(o, key, value);
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
  const hone_memory_facts *m = hone_facts_get_memory(f);
  hn_json_open(o, "memory", '{');
  hn_json_uint(o, "predicted_peak_bytes", m->predicted_peak);
  hn_json_uint(o, "actual_peak_bytes", m->actual_peak);
  hn_json_uint(o, "naive_sum_bytes", m->naive_sum);
  hn_json_uint(o, "weight_bytes", m->weights);
  hn_json_uint(o, "rss_peak_bytes", m->rss_peak);
  hn_json_close(o, '}');
  hn_json_line(o);
}

static void write_notes(hn_str *o, const char *key, const char *text_key, const hone_note *notes, size_t n) {
  hn_json_open(o, key, '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    text(o, "what", notes[i].what);
    text(o, text_key, notes[i].text);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

void hn_facts_write_roofs(hn_str *o, const hone_facts *f) {
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(f, &n);
  hn_json_open(o, "roofs", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    text(o, "name", roofs[i].name);
    hn_json_int(o, "threads", roofs[i].threads);
    number(o, "gflops", roofs[i].gflops);
    number(o, "gbs", roofs[i].gbs);
    count(o, "capacity_bytes", roofs[i].capacity_bytes);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_step(hn_str *o, const hone_step_fact *s) {
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  text(o, "name", s->name);
  text(o, "op_type", s->op_type);
  text(o, "tactic", s->tactic);
  text(o, "epilogue", s->epilogue);
  text(o, "dtype", s->dtype);
  text(o, "shape_in", s->shape_in);
  text(o, "shape_out", s->shape_out);
  text(o, "layout", s->layout);
  count(o, "flops", s->flops);
  count(o, "bytes", s->bytes);
  count(o, "weight_bytes", s->weight_bytes);
  if (s->is_reference) hn_json_bool(o, "is_reference", 1);
  if (s->is_reformat) hn_json_bool(o, "is_reformat", 1);
  if (s->channels_in) hn_json_int(o, "channels_in", s->channels_in);
  if (s->channels_out) hn_json_int(o, "channels_out", s->channels_out);
  index_of(o, "anchor_node", s->anchor_node);
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

  const hone_pass_fact *passes = hone_facts_passes(f, &n);
  hn_json_open(o, "passes", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    text(o, "name", passes[i].name);
    hn_json_int(o, "level", passes[i].level);
    hn_json_uint(o, "hits", passes[i].hits);
    hn_json_num(o, "time_ms", passes[i].time_ms);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);

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

static void write_lanes(hn_str *o, const hone_facts *f) {
  size_t n;
  const hone_lane *lanes = hone_facts_lanes(f, &n);
  hn_json_open(o, "lanes", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_int(o, "lane", lanes[i].lane);
    text(o, "name", lanes[i].name);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_spans(hn_str *o, const hone_span *spans, size_t n) {
  hn_json_open(o, "spans", '[');
  for (size_t i = 0; i < n; i++) {
    const hone_span *s = &spans[i];
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_uint(o, "id", s->id);
    count(o, "parent", s->parent);
    hn_json_text(o, "kind", hone_span_kind_name(s->kind));
    hn_json_int(o, "lane", s->lane);
    hn_json_int(o, "start_ns", s->start_ns);
    hn_json_int(o, "end_ns", s->end_ns);
    index_of(o, "iteration", s->iteration);
    index_of(o, "step", s->step);
    text(o, "name", s->name);
    text(o, "op_type", s->op_type);
    text(o, "tactic", s->tactic);
    count(o, "bytes", s->bytes);
    count(o, "flops", s->flops);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

static void write_samples(hn_str *o, const hone_facts *f) {
  size_t n;
  const hone_wall *walls = hone_facts_walls(f, &n);
  hn_json_open(o, "walls", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_int(o, "iteration", walls[i].iteration);
    hn_json_int(o, "wall_ns", walls[i].wall_ns);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);

  const hone_memory_sample *samples = hone_facts_memory_samples(f, &n);
  hn_json_open(o, "memory_samples", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_int(o, "time_ns", samples[i].time_ns);
    hn_json_uint(o, "planned_bytes", samples[i].planned_bytes);
    count(o, "rss_bytes", samples[i].rss_bytes);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);

  const hone_counter *counters = hone_facts_counters(f, &n);
  hn_json_open(o, "counters", '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    text(o, "name", counters[i].name);
    text(o, "unit", counters[i].unit);
    index_of(o, "step", counters[i].step);
    hn_json_num(o, "value", counters[i].value);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_line(o);
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
  hn_facts_write_roofs(o, f);
  write_graph(o, f);
  const hone_span *spans = hone_facts_spans(f, &n);
  write_lanes(o, f);
  write_spans(o, spans, n);
  write_samples(o, f);
}

hone_status hone_facts_to_json(const hone_facts *f, char **out, size_t *length, hone_error *error) {
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
