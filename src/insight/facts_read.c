/* JSON -> facts v1. The text is hostile until proven otherwise: every member is optional, every type is
 * checked, every number is bounded, and the first fault is reported with its place. */
#include <hone/facts.h>

#include "base/error.h"
#include "base/mem.h"
#include "insight/json_read.h"
#include "base/vec.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* Where the reader is, and the first thing that was wrong. */
typedef struct reader {
  hone_facts *facts;
  hone_error *error;
  hone_status status;
  const char *table;
  size_t row;
  HN_VEC(int32_t) indices; /* scratch of the current row */
  HN_VEC(hone_alternative) alternatives;
} reader;

static void fault(reader *r, const char *key, const char *expected) {
  if (r->status) return;
  r->status = hn_fail(r->error, HONE_ERROR_INPUT, "member \"%s\" has the wrong type or range", key);
  hn_error_where(r->error, "facts: %s[%zu]", r->table, r->row);
  hn_error_expected(r->error, "%s", expected);
}

static const char *text(reader *r, const json_t *row, const char *key) {
  const json_t *v = json_object_get(row, key);
  if (!v || json_is_null(v)) return NULL;
  if (!json_is_string(v)) {
    fault(r, key, "a string");
    return NULL;
  }
  return json_string_value(v);
}

static int64_t integer(reader *r, const json_t *row, const char *key, int64_t low, int64_t high,
                       int64_t absent) {
  const json_t *v = json_object_get(row, key);
  if (!v || json_is_null(v)) return absent;
  if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high) {
    fault(r, key, "an integer in range");
    return absent;
  }
  return json_integer_value(v);
}

static int32_t index_of(reader *r, const json_t *row, const char *key) {
  return (int32_t)integer(r, row, key, -1, INT32_MAX, -1);
}

static uint64_t count(reader *r, const json_t *row, const char *key) {
  return (uint64_t)integer(r, row, key, 0, INT64_MAX, 0);
}

static double number(reader *r, const json_t *row, const char *key, double absent) {
  const json_t *v = json_object_get(row, key);
  if (!v || json_is_null(v)) return absent;
  if (!json_is_number(v)) {
    fault(r, key, "a number");
    return absent;
  }
  return json_number_value(v);
}

static bool flag(reader *r, const json_t *row, const char *key) {
  const json_t *v = json_object_get(row, key);
  if (!v || json_is_null(v)) return false;
  if (!json_is_boolean(v)) fault(r, key, "true or false");
  return json_is_true(v);
}

/* The word's position in `words`, or a fault. */
static int word(reader *r, const json_t *row, const char *key, const char *(*name)(int), int words) {
  const char *s = text(r, row, key);
  for (int i = 0; s && i < words; i++)
    if (strcmp(s, name(i)) == 0) return i;
  fault(r, key, "one of the words in docs/reference/facts-v1.md");
  return 0;
}

static const char *kind_word(int i) { return hone_span_kind_name((hone_span_kind)i); }
static const char *memory_word(int i) { return hone_memory_kind_name((hone_memory_kind)i); }
static const char *fate_word(int i) { return hone_node_fate_name((hone_node_fate)i); }

static void out_of_memory(reader *r) {
  if (!r->status) r->status = hn_fail_memory(r->error, 0, "reading facts");
}

/* Fills r->indices. */
static void indices(reader *r, const json_t *row, const char *key) {
  r->indices.len = 0;
  const json_t *list = json_object_get(row, key), *v;
  if (!list || json_is_null(list)) return;
  if (!json_is_array(list)) fault(r, key, "an array of indices");
  size_t i;
  json_array_foreach(list, i, v) {
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
      fault(r, key, "an array of indices");
    else if (!hn_vec_push(&r->indices, (int32_t)json_integer_value(v)))
      out_of_memory(r);
    if (r->status) return;
  }
}

/* ---- one function per table ---- */

static void read_meta(reader *r, const json_t *o) {
  hone_facts_meta m = {0};
  m.opt_level = -1;
#define X(field) m.field = text(r, o, #field);
  HONE_META_TEXTS(X)
#undef X
#define X(field) m.field = number(r, o, #field, m.field);
  HONE_META_NUMBERS(X)
#undef X
  hone_facts_set_meta(r->facts, &m);
}

static void read_memory(reader *r, const json_t *o) {
  hone_memory_facts m = {.predicted_peak = count(r, o, "predicted_peak_bytes"),
                         .actual_peak = count(r, o, "actual_peak_bytes"),
                         .naive_sum = count(r, o, "naive_sum_bytes"),
                         .weights = count(r, o, "weight_bytes"),
                         .rss_peak = count(r, o, "rss_peak_bytes"),
                         .device_peak = count(r, o, "device_peak_bytes")};
  hone_facts_set_memory(r->facts, &m);
}

static void read_version(reader *r, const json_t *o) {
  hone_facts_add_version(r->facts, text(r, o, "what"), text(r, o, "version"));
}

static void read_unmeasured(reader *r, const json_t *o) {
  hone_facts_add_unmeasured(r->facts, text(r, o, "what"), text(r, o, "why"));
}

static void read_option(reader *r, const json_t *o) {
  hone_facts_add_option(r->facts, text(r, o, "what"), text(r, o, "value"));
}

static void read_roof(reader *r, const json_t *o) {
  hone_roof roof = {.name = text(r, o, "name"),
                    .threads = (int32_t)integer(r, o, "threads", 0, INT32_MAX, 0),
                    .gflops = number(r, o, "gflops", 0),
                    .gbs = number(r, o, "gbs", 0),
                    .capacity_bytes = count(r, o, "capacity_bytes")};
  if (!roof.name) fault(r, "name", "a string");
  hone_facts_add_roof(r->facts, &roof);
}

static void read_step(reader *r, const json_t *o) {
  hone_step_fact s = {.name = text(r, o, "name"),
                      .op_type = text(r, o, "op_type"),
                      .tactic = text(r, o, "tactic"),
                      .epilogue = text(r, o, "epilogue"),
                      .dtype = text(r, o, "dtype"),
                      .shape_in = text(r, o, "shape_in"),
                      .shape_out = text(r, o, "shape_out"),
                      .layout = text(r, o, "layout"),
                      .flops = count(r, o, "flops"),
                      .executed_flops = count(r, o, "executed_flops"),
                      .arithmetic = text(r, o, "arithmetic"),
                      .bytes = count(r, o, "bytes"),
                      .weight_bytes = count(r, o, "weight_bytes"),
                      .predicted_ms = number(r, o, "predicted_ms", 0),
                      .is_reference = flag(r, o, "is_reference"),
                      .is_reformat = flag(r, o, "is_reformat"),
                      .on_host = flag(r, o, "on_host"),
                      .is_launch = flag(r, o, "is_launch"),
                      .channels_in = (int32_t)integer(r, o, "channels_in", 0, INT32_MAX, 0),
                      .channels_out = (int32_t)integer(r, o, "channels_out", 0, INT32_MAX, 0),
                      .anchor_node = index_of(r, o, "anchor_node")};
  indices(r, o, "nodes");
  r->alternatives.len = 0;
  const json_t *list = json_object_get(o, "alternatives"), *v;
  if (list && !json_is_array(list)) fault(r, "alternatives", "an array");
  size_t i;
  json_array_foreach(list, i, v) {
    if (!json_is_object(v)) fault(r, "alternatives", "an array of objects");
    if (r->status) return;
    hone_alternative a = {text(r, v, "tactic"), text(r, v, "reason"), number(r, v, "time_ms", -1)};
    if (!hn_vec_push(&r->alternatives, a)) out_of_memory(r);
  }
  s.nodes = r->indices.ptr;
  s.node_count = r->indices.len;
  s.alternatives = r->alternatives.ptr;
  s.alternative_count = r->alternatives.len;
  hone_facts_add_step(r->facts, &s);
}

static void read_preview_step(reader *r, const json_t *o) {
  indices(r, o, "nodes");
  hone_preview_step s = {.level = (int32_t)integer(r, o, "level", 0, INT32_MAX, 0),
                         .name = text(r, o, "name"),
                         .op_type = text(r, o, "op_type"),
                         .tactic = text(r, o, "tactic"),
                         .epilogue = text(r, o, "epilogue"),
                         .predicted_ms = number(r, o, "predicted_ms", 0),
                         .timed_ms = number(r, o, "timed_ms", 0),
                         .scaled_ms = number(r, o, "scaled_ms", 0),
                         .anchor_node = index_of(r, o, "anchor_node"),
                         .nodes = r->indices.ptr,
                         .node_count = r->indices.len};
  hone_facts_add_preview_step(r->facts, &s);
}

static void read_node(reader *r, const json_t *o) {
  hone_node_fact n = {.name = text(r, o, "name"),
                      .op_type = text(r, o, "op_type"),
                      .fate = (hone_node_fate)word(r, o, "fate", fate_word, HONE_NODE_FATE_COUNT),
                      .step = index_of(r, o, "step"),
                      .reason = text(r, o, "reason")};
  hone_facts_add_node(r->facts, &n);
}

static void read_pass(reader *r, const json_t *o) {
  hone_pass_fact p = {.name = text(r, o, "name"),
                      .level = (int32_t)integer(r, o, "level", INT32_MIN, INT32_MAX, 0),
                      .hits = count(r, o, "hits"),
                      .time_ms = number(r, o, "time_ms", 0)};
  hone_facts_add_pass(r->facts, &p);
}

static void read_near_miss(reader *r, const json_t *o) {
  indices(r, o, "nodes");
  hone_near_miss m = {.pass = text(r, o, "pass"),
                      .reason = text(r, o, "reason"),
                      .nodes = r->indices.ptr,
                      .node_count = r->indices.len,
                      .bytes_saved = count(r, o, "bytes_saved"),
                      .enable_level = index_of(r, o, "enable_level")};
  hone_facts_add_near_miss(r->facts, &m);
}

static void read_lane(reader *r, const json_t *o) {
  hone_facts_name_lane(r->facts, (int32_t)integer(r, o, "lane", INT32_MIN, INT32_MAX, 0), text(r, o, "name"));
}

static uint8_t memory(reader *r, const json_t *o, const char *key) {
  return json_object_get(o, key) ? (uint8_t)word(r, o, key, memory_word, HONE_MEMORY_KIND_COUNT) : 0;
}

static void read_span(reader *r, const json_t *o) {
  hone_span s = {.parent = (uint32_t)integer(r, o, "parent", 0, UINT32_MAX, 0),
                 .start_ns = integer(r, o, "start_ns", INT64_MIN / 2, INT64_MAX / 2, 0),
                 .end_ns = integer(r, o, "end_ns", INT64_MIN / 2, INT64_MAX / 2, 0),
                 .kind = (hone_span_kind)word(r, o, "kind", kind_word, HONE_SPAN_KIND_COUNT),
                 .lane = (int32_t)integer(r, o, "lane", INT32_MIN, INT32_MAX, 0),
                 .iteration = index_of(r, o, "iteration"),
                 .step = index_of(r, o, "step"),
                 .name = text(r, o, "name"),
                 .op_type = text(r, o, "op_type"),
                 .tactic = text(r, o, "tactic"),
                 .bytes = count(r, o, "bytes"),
                 .flops = count(r, o, "flops"),
                 .correlation = (uint32_t)integer(r, o, "correlation", 0, UINT32_MAX, 0),
                 .launch = (uint32_t)integer(r, o, "launch", 0, UINT32_MAX, 0),
                 .source_memory = memory(r, o, "source_memory"),
                 .target_memory = memory(r, o, "target_memory")};
  /* Ids are positions; a file that numbers them otherwise would have its parents point at strangers. */
  if (integer(r, o, "id", 0, UINT32_MAX, 0) != (int64_t)r->row + 1)
    fault(r, "id", "the span's position, from 1");
  hone_facts_add_span(r->facts, &s);
}

static void read_launch(reader *r, const json_t *o) {
  hone_launch l = {.static_shared = count(r, o, "static_shared"),
                   .dynamic_shared = count(r, o, "dynamic_shared"),
                   .occupancy_pct = number(r, o, "occupancy_pct", 0)};
#define U32(field) l.field = (uint32_t)integer(r, o, #field, 0, UINT32_MAX, 0)
  U32(grid_x), U32(grid_y), U32(grid_z), U32(block_x), U32(block_y), U32(block_z), U32(registers);
#undef U32
  hone_facts_add_launch(r->facts, &l);
}

static void read_step_stats(reader *r, const json_t *o) {
  hone_step_stats s = {.step = index_of(r, o, "step"),
                       .kind = json_object_get(o, "kind")
                                   ? (hone_span_kind)word(r, o, "kind", kind_word, HONE_SPAN_KIND_COUNT)
                                   : HONE_SPAN_RUN,
                       .count = count(r, o, "count"),
                       .runs = count(r, o, "runs"),
                       .total_ms = number(r, o, "total_ms", 0),
                       .median_ms = number(r, o, "median_ms", 0),
                       .min_ms = number(r, o, "min_ms", 0),
                       .max_ms = number(r, o, "max_ms", 0)};
  hone_facts_add_step_stats(r->facts, &s);
}

static void read_wall(reader *r, const json_t *o) {
  hone_facts_add_wall(r->facts, index_of(r, o, "iteration"), integer(r, o, "wall_ns", 0, INT64_MAX / 4, 0));
}

static void read_slow_run(reader *r, const json_t *o) {
  const hone_slow_run run = {.time_s = number(r, o, "time_s", 0),
                             .wall_ms = number(r, o, "wall_ms", 0),
                             .usual_ms = number(r, o, "usual_ms", 0),
                             .step = text(r, o, "step"),
                             .pause_before = text(r, o, "pause_before"),
                             .part_ms = number(r, o, "part_ms", 0),
                             .part_usual_ms = number(r, o, "part_usual_ms", 0),
                             .involuntary_switches =
                                 (uint32_t)integer(r, o, "involuntary_switches", 0, UINT32_MAX, 0),
                             .minor_faults = (uint32_t)integer(r, o, "minor_faults", 0, UINT32_MAX, 0),
                             .major_faults = (uint32_t)integer(r, o, "major_faults", 0, UINT32_MAX, 0),
                             .clock_mhz = number(r, o, "clock_mhz", (double)NAN),
                             .usual_clock_mhz = number(r, o, "usual_clock_mhz", (double)NAN),
                             .others_pct = number(r, o, "others_pct", (double)NAN),
                             .throttles = number(r, o, "throttles", (double)NAN)};
  hone_facts_add_slow_run(r->facts, &run);
}

static void read_sample(reader *r, const json_t *o) {
  hone_memory_sample s = {integer(r, o, "time_ns", INT64_MIN / 4, INT64_MAX / 4, 0),
                          count(r, o, "planned_bytes"), count(r, o, "rss_bytes")};
  hone_facts_add_memory_sample(r->facts, &s);
}

static void read_counter(reader *r, const json_t *o) {
  hone_counter c = {text(r, o, "name"), text(r, o, "unit"), index_of(r, o, "step"),
                    number(r, o, "value", NAN)};
  hone_facts_add_counter(r->facts, &c);
}

/* ---- the document ---- */

static void read_object(reader *r, const json_t *root, const char *key,
                        void (*read)(reader *, const json_t *)) {
  const json_t *o = json_object_get(root, key);
  r->table = key;
  r->row = 0;
  if (!o || r->status) return;
  if (json_is_object(o))
    read(r, o);
  else
    fault(r, key, "an object");
}

static void read_table(reader *r, const json_t *root, const char *key,
                       void (*read)(reader *, const json_t *)) {
  const json_t *list = json_object_get(root, key), *row;
  r->table = key;
  r->row = 0;
  if (!list || r->status) return;
  if (!json_is_array(list)) fault(r, key, "an array");
  json_array_foreach(list, r->row, row) {
    if (json_is_object(row))
      read(r, row);
    else
      fault(r, key, "an array of objects");
    if (r->status) return;
  }
}

static hone_status check_document(const json_t *root, hone_error *error) {
  const json_t *schema = json_object_get(root, "schema");
  if (!json_is_object(root) || !json_is_string(schema) ||
      strcmp(json_string_value(schema), "hone facts") != 0)
    return hn_fail(error, HONE_ERROR_INPUT,
                   "this JSON is no record of facts: \"schema\" is not \"hone facts\"");
  const json_t *version = json_object_get(root, "version");
  if (!json_is_integer(version) || json_integer_value(version) < 1)
    return hn_fail(error, HONE_ERROR_INPUT, "facts without a version");
  if (json_integer_value(version) > HONE_FACTS_VERSION) {
    hone_status status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "facts version %lld is newer than this hone",
                                 (long long)json_integer_value(version));
    hn_error_expected(error, "version %d or older", HONE_FACTS_VERSION);
    return status;
  }
  return HONE_OK;
}

hone_status hone_facts_from_json(const char *json, size_t length, hone_facts **facts, hone_error *error) {
  if (!facts) return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_from_json: facts may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *facts = NULL;
  json_error_t where;
  reader r = {.error = error};
  json_t *root = hn_json_load(json, length, 0, &where);
  if (!root) {
    r.status = hn_fail(error, HONE_ERROR_INPUT, "no JSON: %s", where.text);
    hn_error_where(error, "facts: line %d, offset %d", where.line, where.position);
    return hn_settle(r.status, lost, error);
  }
  r.status = check_document(root, error);
  if (r.status) goto done;
  r.facts = hone_facts_create();
  if (!r.facts) {
    out_of_memory(&r);
    goto done;
  }
  read_object(&r, root, "meta", read_meta);
  read_object(&r, root, "memory", read_memory);
  read_table(&r, root, "versions", read_version);
  read_table(&r, root, "not_measured", read_unmeasured);
  read_table(&r, root, "options", read_option);
  read_table(&r, root, "roofs", read_roof);
  read_table(&r, root, "steps", read_step);
  read_table(&r, root, "nodes", read_node);
  read_table(&r, root, "passes", read_pass);
  read_table(&r, root, "near_misses", read_near_miss);
  read_table(&r, root, "preview_steps", read_preview_step);
  read_table(&r, root, "lanes", read_lane);
  read_table(&r, root, "spans", read_span);
  read_table(&r, root, "launches", read_launch);
  read_table(&r, root, "step_stats", read_step_stats);
  read_table(&r, root, "walls", read_wall);
  read_table(&r, root, "memory_samples", read_sample);
  read_table(&r, root, "counters", read_counter);
  read_table(&r, root, "slow_runs", read_slow_run);
  if (!r.status) r.status = hone_facts_check(r.facts, error);
done:
  r.status = hn_settle(r.status, lost, error);
  if (r.status)
    hone_facts_destroy(r.facts);
  else
    *facts = r.facts;
  hn_vec_free(&r.indices);
  hn_vec_free(&r.alternatives);
  json_decref(root);
  return r.status;
}
