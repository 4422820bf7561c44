#include <hone/facts.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#include <string.h>

struct hone_facts {
  hn_arena arena; /* strings and index lists of all rows */
  hn_map interned;
  bool failed; /* out of memory: sticky, see hone_facts_check */
  hone_facts_meta meta;
  double dropped; /* spans lost by buffers; kept apart because the metadata may be set later */
  hone_memory_facts memory;
  HN_VEC(hone_span) spans;
  HN_VEC(hone_step_fact) steps;
  HN_VEC(hone_node_fact) nodes;
  HN_VEC(hone_pass_fact) passes;
  HN_VEC(hone_near_miss) misses;
  HN_VEC(hone_preview_step) previews;
  HN_VEC(hone_roof) roofs;
  HN_VEC(hone_memory_sample) samples;
  HN_VEC(hone_counter) counters;
  HN_VEC(hone_launch) launches;
  HN_VEC(hone_step_stats) step_stats;
  HN_VEC(hone_wall) walls;
  HN_VEC(hone_note) versions;
  HN_VEC(hone_note) unmeasured;
  HN_VEC(hone_note) options;
  HN_VEC(hone_slow_run) slow_runs;
  HN_VEC(hone_lane) lanes;
};

static const char *const kind_names[] = {
#define X(id, word) word,
    HONE_SPAN_KINDS(X)
#undef X
};

static const char *const fate_names[] = {
#define X(id, word) word,
    HONE_NODE_FATES(X)
#undef X
};

static const char *const memory_names[] = {
#define X(id, word) word,
    HONE_MEMORY_KINDS(X)
#undef X
};

const char *hone_memory_kind_name(hone_memory_kind kind) {
  return (unsigned)kind < HONE_MEMORY_KIND_COUNT ? memory_names[kind] : "?";
}

const char *hone_span_kind_name(hone_span_kind kind) {
  return (unsigned)kind < HONE_SPAN_KIND_COUNT ? kind_names[kind] : "?";
}

const char *hone_node_fate_name(hone_node_fate fate) {
  return (unsigned)fate < HONE_NODE_FATE_COUNT ? fate_names[fate] : "?";
}

hone_status hone_span_buffer_init(hone_span_buffer *buffer, size_t capacity, hone_error *error) {
  if (!buffer) return hn_fail(error, HONE_ERROR_USAGE, "hone_span_buffer_init: buffer may not be NULL");
  *buffer = (hone_span_buffer){0};
  buffer->records = hn_calloc(capacity, sizeof *buffer->records);
  if (!buffer->records) return hn_fail_memory(error, capacity * sizeof *buffer->records, "the span buffer");
  buffer->capacity = capacity;
  return HONE_OK;
}

void hone_span_buffer_free(hone_span_buffer *buffer) {
  if (!buffer) return;
  hn_free(buffer->records);
  *buffer = (hone_span_buffer){0};
}

hone_facts *hone_facts_create(void) {
  hone_facts *f = hn_calloc(1, sizeof *f);
  if (f) f->meta.opt_level = -1;
  return f;
}

void hone_facts_destroy(hone_facts *f) {
  if (!f) return;
  hn_vec_free(&f->spans);
  hn_vec_free(&f->steps);
  hn_vec_free(&f->nodes);
  hn_vec_free(&f->passes);
  hn_vec_free(&f->misses);
  hn_vec_free(&f->previews);
  hn_vec_free(&f->roofs);
  hn_vec_free(&f->samples);
  hn_vec_free(&f->counters);
  hn_vec_free(&f->launches);
  hn_vec_free(&f->step_stats);
  hn_vec_free(&f->walls);
  hn_vec_free(&f->versions);
  hn_vec_free(&f->unmeasured);
  hn_vec_free(&f->options);
  hn_vec_free(&f->slow_runs);
  hn_vec_free(&f->lanes);
  hn_map_free(&f->interned);
  hn_arena_free(&f->arena);
  hn_free(f);
}

/* ---- building ---- */

static const char *intern(hone_facts *f, const char *s) {
  if (!s || f->failed) return NULL;
  char *known = hn_map_get(&f->interned, s);
  if (known) return known;
  char *copy = hn_arena_strdup(&f->arena, s);
  if (!copy || !hn_map_set(&f->interned, copy, copy)) f->failed = true;
  return copy;
}

static const int32_t *copy_indices(hone_facts *f, const int32_t *indices, size_t count) {
  if (!count) return NULL;
  const int32_t *copy = hn_arena_memdup(&f->arena, indices, count * sizeof *indices);
  if (!copy) f->failed = true;
  return copy;
}

/* Pushes a row whose strings are interned already; false (and sticky) when out of memory. */
#define PUSH(facts, table, row)                                                                              \
  (!(facts)->failed && (hn_vec_push(&(facts)->table, row) || ((facts)->failed = true, false)))

void hone_facts_set_meta(hone_facts *f, const hone_facts_meta *meta) {
  if (!f || !meta) return;
  f->meta = *meta;
  if (f->meta.dropped_spans < f->dropped) f->meta.dropped_spans = f->dropped;
#define X(field) f->meta.field = intern(f, meta->field);
  HONE_META_TEXTS(X)
#undef X
}

void hone_facts_set_memory(hone_facts *f, const hone_memory_facts *memory) {
  if (!f || !memory) return;
  f->memory = *memory;
}

uint32_t hone_facts_add_span(hone_facts *f, const hone_span *span) {
  if (!f || !span) return UINT32_MAX;
  hone_span row = *span;
  row.name = intern(f, span->name);
  row.op_type = intern(f, span->op_type);
  row.tactic = intern(f, span->tactic);
  row.id = (uint32_t)f->spans.len + 1;
  return PUSH(f, spans, row) ? row.id : 0;
}

int32_t hone_facts_add_step(hone_facts *f, const hone_step_fact *step) {
  if (!f || !step) return -1;
  hone_step_fact row = *step;
  row.name = intern(f, step->name);
  row.op_type = intern(f, step->op_type);
  row.tactic = intern(f, step->tactic);
  row.epilogue = intern(f, step->epilogue);
  row.dtype = intern(f, step->dtype);
  row.arithmetic = intern(f, step->arithmetic);
  row.shape_in = intern(f, step->shape_in);
  row.shape_out = intern(f, step->shape_out);
  row.layout = intern(f, step->layout);
  row.nodes = copy_indices(f, step->nodes, step->node_count);
  row.alternatives = NULL;
  if (step->alternative_count) {
    hone_alternative *copy = HN_NEW_ARRAY(&f->arena, hone_alternative, step->alternative_count);
    if (!copy) f->failed = true;
    for (size_t i = 0; copy && i < step->alternative_count; i++) {
      copy[i].tactic = intern(f, step->alternatives[i].tactic);
      copy[i].reason = intern(f, step->alternatives[i].reason);
      copy[i].time_ms = step->alternatives[i].time_ms;
    }
    row.alternatives = copy;
  }
  return PUSH(f, steps, row) ? (int32_t)f->steps.len - 1 : -1;
}

int32_t hone_facts_add_node(hone_facts *f, const hone_node_fact *node) {
  if (!f || !node) return -1;
  hone_node_fact row = *node;
  row.name = intern(f, node->name);
  row.op_type = intern(f, node->op_type);
  row.reason = intern(f, node->reason);
  return PUSH(f, nodes, row) ? (int32_t)f->nodes.len - 1 : -1;
}

void hone_facts_add_pass(hone_facts *f, const hone_pass_fact *pass) {
  if (!f || !pass) return;
  hone_pass_fact row = *pass;
  row.name = intern(f, pass->name);
  PUSH(f, passes, row);
}

void hone_facts_add_preview_step(hone_facts *f, const hone_preview_step *step) {
  if (!f || !step) return;
  hone_preview_step row = *step;
  row.name = intern(f, step->name);
  row.op_type = intern(f, step->op_type);
  row.tactic = intern(f, step->tactic);
  row.epilogue = intern(f, step->epilogue);
  row.nodes = copy_indices(f, step->nodes, step->node_count);
  PUSH(f, previews, row);
}

void hone_facts_add_near_miss(hone_facts *f, const hone_near_miss *miss) {
  if (!f || !miss) return;
  hone_near_miss row = *miss;
  row.pass = intern(f, miss->pass);
  row.reason = intern(f, miss->reason);
  row.nodes = copy_indices(f, miss->nodes, miss->node_count);
  PUSH(f, misses, row);
}

void hone_facts_add_roof(hone_facts *f, const hone_roof *roof) {
  if (!f || !roof) return;
  hone_roof row = *roof;
  row.name = intern(f, roof->name ? roof->name : "?"); /* readers compare names */
  PUSH(f, roofs, row);
}

void hone_facts_raise_roof(hone_facts *f, const hone_roof *roof) {
  if (!f || !roof) return;
  for (size_t i = 0; roof->name && i < f->roofs.len; i++) {
    hone_roof *r = &f->roofs.ptr[i];
    if (r->threads != roof->threads || strcmp(r->name, roof->name) != 0) continue;
    if (roof->gflops > r->gflops) r->gflops = roof->gflops;
    if (roof->gbs > r->gbs) r->gbs = roof->gbs;
    return;
  }
  hone_facts_add_roof(f, roof);
}

void hone_facts_add_memory_sample(hone_facts *f, const hone_memory_sample *sample) {
  if (!f || !sample) return;
  PUSH(f, samples, *sample);
}

void hone_facts_add_counter(hone_facts *f, const hone_counter *counter) {
  if (!f || !counter) return;
  hone_counter row = *counter;
  row.name = intern(f, counter->name);
  row.unit = intern(f, counter->unit);
  PUSH(f, counters, row);
}

uint32_t hone_facts_add_launch(hone_facts *f, const hone_launch *launch) {
  if (!f || !launch) return UINT32_MAX;
  return PUSH(f, launches, *launch) ? (uint32_t)f->launches.len : 0;
}

void hone_facts_add_step_stats(hone_facts *f, const hone_step_stats *stats) {
  if (!f || !stats) return;
  hone_step_stats row = *stats;
  const bool known = row.step >= 0 && (size_t)row.step < f->steps.len;
  if (row.kind == HONE_SPAN_RUN)
    row.kind = known && f->steps.ptr[row.step].is_reformat ? HONE_SPAN_REFORMAT : HONE_SPAN_KERNEL;
  if (!row.runs) row.runs = 1;
  PUSH(f, step_stats, row);
}

void hone_facts_name_lane(hone_facts *f, int32_t lane, const char *name) {
  if (!f) return;
  const char *text = intern(f, name);
  for (size_t i = 0; i < f->lanes.len; i++)
    if (f->lanes.ptr[i].lane == lane) {
      f->lanes.ptr[i].name = text;
      return;
    }
  PUSH(f, lanes, ((hone_lane){lane, text}));
}

void hone_facts_add_wall(hone_facts *f, int32_t iteration, int64_t wall_ns) {
  if (!f) return;
  if (HN_FAULT("wall_microseconds")) wall_ns /= 1000;
  if (HN_FAULT("wall_lost") && iteration == 0) return;
  if (HN_FAULT("wall_same_iteration") && iteration > 0) iteration--;
  PUSH(f, walls, ((hone_wall){iteration, wall_ns}));
}

void hone_facts_add_version(hone_facts *f, const char *what, const char *version) {
  if (!f) return;
  hone_note row = {intern(f, what), intern(f, version)};
  PUSH(f, versions, row);
}

void hone_facts_add_unmeasured(hone_facts *f, const char *what, const char *why) {
  if (!f) return;
  hone_note row = {intern(f, what), intern(f, why)};
  PUSH(f, unmeasured, row);
}

void hone_facts_add_slow_run(hone_facts *f, const hone_slow_run *run) {
  if (!f || !run) return;
  hone_slow_run row = *run;
  row.step = intern(f, run->step);
  row.pause_before = intern(f, run->pause_before);
  PUSH(f, slow_runs, row);
}

void hone_facts_add_option(hone_facts *f, const char *name, const char *value) {
  if (!f) return;
  hone_note row = {intern(f, name), intern(f, value)};
  PUSH(f, options, row);
}

void hone_facts_add_buffer(hone_facts *f, const hone_span_buffer *buffer) {
  if (!f || !buffer) return;
  size_t first = f->spans.len;
  for (size_t i = 0; i < buffer->count; i++) {
    const hone_span_record *r = &buffer->records[i];
    hone_span span = {.start_ns = r->start_ns,
                      .end_ns = r->end_ns,
                      .kind = r->kind,
                      .lane = r->lane,
                      .iteration = r->iteration,
                      .step = r->step,
                      .name = r->name,
                      .bytes = r->bytes};
    if (HN_FAULT("record_lost_step") && span.step == 1) continue;
    if (HN_FAULT("record_lost_run") && span.kind == HONE_SPAN_RUN && span.iteration == 1) continue;
    if (HN_FAULT("record_twice") && span.step == 2) hone_facts_add_span(f, &span);
    if (HN_FAULT("record_next_iteration") && span.step == 2) span.iteration++;
    if (HN_FAULT("record_late_end") && span.step == 1) span.end_ns += (span.end_ns - span.start_ns) / 2;
    if (HN_FAULT("record_short_run") && span.kind == HONE_SPAN_RUN)
      span.end_ns -= (span.end_ns - span.start_ns) / 10;
    if (HN_FAULT("record_slow_clock")) {
      span.start_ns -= span.start_ns / 8;
      span.end_ns -= span.end_ns / 8;
    }
    if (HN_FAULT("record_wrong_step") && span.step == 3) span.step = 2;
    if (HN_FAULT("record_microseconds") && span.kind != HONE_SPAN_RUN)
      span.end_ns = span.start_ns + (span.end_ns - span.start_ns) / 1000;
    if (!hone_facts_add_span(f, &span)) return;
  }
  /* A context pushes the RUN span of an iteration after its children, so walking back meets the parent first.
   */
  uint32_t run = 0;
  for (size_t i = f->spans.len; i-- > first;) {
    hone_span *s = &f->spans.ptr[i];
    if (s->kind == HONE_SPAN_RUN) {
      run = s->id;
      continue;
    }
    const hone_span *parent = run ? &f->spans.ptr[run - 1] : NULL;
    if (parent && parent->iteration == s->iteration && parent->start_ns <= s->start_ns &&
        s->end_ns <= parent->end_ns)
      s->parent = run;
  }
  f->dropped += (double)buffer->dropped;
  f->meta.dropped_spans += (double)buffer->dropped;
}

/* ---- checking ---- */

static bool index_ok(int32_t index, size_t count) {
  return index == -1 || (index >= 0 && (size_t)index < count);
}

static hone_status check_indices(const hone_facts *f, const char *table, size_t row, const int32_t *nodes,
                                 size_t count, hone_error *error) {
  for (size_t i = 0; i < count; i++)
    if (nodes[i] < 0 || (size_t)nodes[i] >= f->nodes.len) {
      hone_status status =
          hn_fail(error, HONE_ERROR_INPUT, "node index %d points outside the node table", nodes[i]);
      hn_error_where(error, "facts: %s[%zu]", table, row);
      return status;
    }
  return HONE_OK;
}

/* Sums of many such times are still numbers. */
static bool is_time_ms(double ms) { return ms >= 0 && ms < 1e13; }

hone_status hone_facts_check(const hone_facts *f, hone_error *error) {
  if (!f) return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_check: f may not be NULL");
  if (f->failed) return hn_fail_memory(error, f->arena.used, "the facts of a run");
  for (size_t i = 0; i < f->spans.len; i++) {
    const hone_span *s = &f->spans.ptr[i];
    const char *fault = NULL;
    if (s->end_ns < s->start_ns)
      fault = "ends before it starts";
    else if (!index_ok(s->step, f->steps.len))
      fault = "names a step that does not exist";
    else if (s->parent > f->spans.len)
      fault = "names a parent that does not exist";
    else if ((unsigned)s->kind >= HONE_SPAN_KIND_COUNT)
      fault = "has an unknown kind";
    else if (s->launch > f->launches.len)
      fault = "names a launch that does not exist";
    else if (s->source_memory >= HONE_MEMORY_KIND_COUNT || s->target_memory >= HONE_MEMORY_KIND_COUNT)
      fault = "names an unknown kind of memory";
    if (fault) {
      hone_status status = hn_fail(error, HONE_ERROR_INPUT, "a span %s", fault);
      hn_error_where(error, "facts: spans[%zu]", i);
      return status;
    }
  }
  for (size_t i = 0; i < f->steps.len; i++) {
    const hone_step_fact *s = &f->steps.ptr[i];
    hone_status status = check_indices(f, "steps", i, s->nodes, s->node_count, error);
    if (!status && !index_ok(s->anchor_node, f->nodes.len))
      status = check_indices(f, "steps", i, &s->anchor_node, 1, error);
    if (status) return status;
  }
  for (size_t i = 0; i < f->misses.len; i++) {
    hone_status status =
        check_indices(f, "near_misses", i, f->misses.ptr[i].nodes, f->misses.ptr[i].node_count, error);
    if (status) return status;
  }
  for (size_t i = 0; i < f->previews.len; i++) {
    const hone_preview_step *s = &f->previews.ptr[i];
    hone_status status = check_indices(f, "preview_steps", i, s->nodes, s->node_count, error);
    if (!status && !index_ok(s->anchor_node, f->nodes.len))
      status = check_indices(f, "preview_steps", i, &s->anchor_node, 1, error);
    if (status) return status;
  }
  for (size_t i = 0; i < f->nodes.len; i++)
    if (!index_ok(f->nodes.ptr[i].step, f->steps.len)) {
      hone_status status = hn_fail(error, HONE_ERROR_INPUT, "a node names a step that does not exist");
      hn_error_where(error, "facts: nodes[%zu]", i);
      return status;
    }
  for (size_t i = 0; i < f->counters.len; i++)
    if (!index_ok(f->counters.ptr[i].step, f->steps.len)) {
      hone_status status = hn_fail(error, HONE_ERROR_INPUT, "a counter names a step that does not exist");
      hn_error_where(error, "facts: counters[%zu]", i);
      return status;
    }
  for (size_t i = 0; i < f->step_stats.len; i++) {
    const hone_step_stats *s = &f->step_stats.ptr[i];
    const char *fault = NULL;
    if (s->step < 0 || (size_t)s->step >= f->steps.len)
      fault = "name a step that does not exist";
    else if ((unsigned)s->kind >= HONE_SPAN_KIND_COUNT)
      fault = "have an unknown kind";
    else if (!is_time_ms(s->total_ms) || !is_time_ms(s->median_ms) || !is_time_ms(s->min_ms) ||
             !is_time_ms(s->max_ms))
      fault = "hold a time that is negative, no number or beyond centuries";
    if (fault) {
      hone_status status = hn_fail(error, HONE_ERROR_INPUT, "the statistics of a step %s", fault);
      hn_error_where(error, "facts: step_stats[%zu]", i);
      return status;
    }
  }
  return HONE_OK;
}

/* ---- reading ---- */

const hone_facts_meta *hone_facts_get_meta(const hone_facts *f) { return f ? &f->meta : NULL; }
const hone_memory_facts *hone_facts_get_memory(const hone_facts *f) { return f ? &f->memory : NULL; }

#define READER(type, function, table)                                                                        \
  const type *function(const hone_facts *f, size_t *count) {                                                 \
    if (count) *count = f ? f->table.len : 0;                                                                \
    return f ? f->table.ptr : NULL;                                                                          \
  }
READER(hone_span, hone_facts_spans, spans)
READER(hone_step_fact, hone_facts_steps, steps)
READER(hone_node_fact, hone_facts_nodes, nodes)
READER(hone_pass_fact, hone_facts_passes, passes)
READER(hone_near_miss, hone_facts_near_misses, misses)
READER(hone_preview_step, hone_facts_preview_steps, previews)
READER(hone_roof, hone_facts_roofs, roofs)
READER(hone_memory_sample, hone_facts_memory_samples, samples)
READER(hone_counter, hone_facts_counters, counters)
READER(hone_launch, hone_facts_launches, launches)
READER(hone_step_stats, hone_facts_step_stats, step_stats)
READER(hone_wall, hone_facts_walls, walls)
READER(hone_note, hone_facts_versions, versions)
READER(hone_note, hone_facts_unmeasured, unmeasured)
READER(hone_note, hone_facts_options, options)
READER(hone_slow_run, hone_facts_slow_runs, slow_runs)
READER(hone_lane, hone_facts_lanes, lanes)

const char *hone_facts_lane_name(const hone_facts *f, int32_t lane) {
  if (!f) return NULL;
  for (size_t i = 0; i < f->lanes.len; i++)
    if (f->lanes.ptr[i].lane == lane) return f->lanes.ptr[i].name;
  return NULL;
}
