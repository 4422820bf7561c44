#include <hone/facts.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "insight/facts_table.h"

#include <string.h>

struct hone_facts {
  hn_arena arena; /* strings and index lists of all rows */
  hn_map interned;
  bool failed;    /* out of memory: sticky, see hone_facts_check */
  double dropped; /* spans lost by buffers; kept apart because the metadata may be set later */
#define OBJECT(id, type, key, about) type id;
#include "insight/facts.def"
  struct {
    void *rows;
    size_t len, cap;
  } table[HN_FACTS_COUNT];
};

static const size_t objects[HN_FACTS_COUNT] = {
#define OBJECT(id, type, key, about) [HN_FACTS_##id] = offsetof(struct hone_facts, id),
#include "insight/facts.def"
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
  for (int i = 0; i < HN_FACTS_COUNT; i++) hn_free(f->table[i].rows);
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

/* Makes the row's texts and lists the facts' own. */
static void own(hone_facts *f, hn_fact_id id, void *row) {
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++) {
    if (m->word == HN_FACT_TEXT) hn_fact_set_text(m, row, intern(f, hn_fact_text(m, row)));
    if (m->store != HN_STORE_LIST) continue;
    size_t count;
    const void *list = hn_fact_list(m, row, &count);
    const size_t size = m->word == HN_FACT_INDICES ? sizeof(int32_t) : hn_fact_tables[m->of].size;
    char *copy = count && !f->failed ? hn_arena_array(&f->arena, count, size) : NULL;
    if (count && !copy) f->failed = true;
    if (copy) memcpy(copy, list, count * size);
    for (size_t i = 0; copy && m->word == HN_FACT_RECORDS && i < count; i++) own(f, m->of, copy + i * size);
    hn_fact_set_list(m, row, copy, count);
  }
}

/* What is done to a row before it is kept; false: it is not kept. */
typedef bool preparation(hone_facts *f, hn_fact_row *row);

static bool drop_more(hone_facts *f, hn_fact_row *row) {
  if (row->meta.dropped_spans < f->dropped) row->meta.dropped_spans = f->dropped;
  return true;
}

static bool number_span(hone_facts *f, hn_fact_row *row) {
  row->spans.id = (uint32_t)f->table[HN_FACTS_spans].len + 1;
  return true;
}

static bool name_roof(hone_facts *f, hn_fact_row *row) {
  (void)f;
  if (!row->roofs.name) row->roofs.name = "?"; /* readers compare names */
  return true;
}

static bool complete_stats(hone_facts *f, hn_fact_row *row) {
  hone_step_stats *stats = &row->step_stats;
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(f, &n);
  const bool known = stats->step >= 0 && (size_t)stats->step < n;
  if (stats->kind == HONE_SPAN_RUN)
    stats->kind = known && steps[stats->step].is_reformat ? HONE_SPAN_REFORMAT : HONE_SPAN_KERNEL;
  if (!stats->runs) stats->runs = 1;
  return true;
}

/* A lane has one name: the last one. */
static bool rename_lane(hone_facts *f, hn_fact_row *row) {
  hone_lane *lanes = f->table[HN_FACTS_lanes].rows;
  for (size_t i = 0; i < f->table[HN_FACTS_lanes].len; i++)
    if (lanes[i].lane == row->lanes.lane) {
      lanes[i].name = intern(f, row->lanes.name);
      return false;
    }
  return true;
}

static bool spoil_wall(hone_facts *f, hn_fact_row *row) {
  (void)f;
  if (HN_FAULT("wall_microseconds")) row->walls.wall_ns /= 1000;
  if (HN_FAULT("wall_lost") && row->walls.iteration == 0) return false;
  if (HN_FAULT("wall_same_iteration") && row->walls.iteration > 0) row->walls.iteration--;
  return true;
}

static preparation *const prepare[HN_FACTS_COUNT] = {
    [HN_FACTS_meta] = drop_more,    [HN_FACTS_spans] = number_span,
    [HN_FACTS_roofs] = name_roof,   [HN_FACTS_step_stats] = complete_stats,
    [HN_FACTS_lanes] = rename_lane, [HN_FACTS_walls] = spoil_wall,
};

bool hn_facts_put(hone_facts *f, hn_fact_id id, const void *given) {
  const size_t size = hn_fact_tables[id].size, len = f->table[id].len;
  hn_fact_row row;
  memcpy(&row, given, size); /* first: it may lie in the table, which moves */
  if (prepare[id] && !prepare[id](f, &row)) return false;
  own(f, id, &row);
  if (hn_fact_tables[id].layout == HN_FACT_OBJECT) {
    memcpy((char *)f + objects[id], &row, size);
    return !f->failed;
  }
  if (!f->failed && !hn_vec_grow(&f->table[id].rows, &f->table[id].cap, len + 1, size)) f->failed = true;
  if (f->failed) return false;
  memcpy((char *)f->table[id].rows + len * size, &row, size);
  f->table[id].len++;
  return true;
}

/* The adders, by what they return. */
#define ADD_NOTHING(id, one, type)                                                                           \
  void hone_facts_add_##one(hone_facts *f, const type *row) {                                                \
    if (f && row) hn_facts_put(f, HN_FACTS_##id, row);                                                       \
  }
#define ADD_INDEX(id, one, type)                                                                             \
  int32_t hone_facts_add_##one(hone_facts *f, const type *row) {                                             \
    return f && row && hn_facts_put(f, HN_FACTS_##id, row) ? (int32_t)f->table[HN_FACTS_##id].len - 1 : -1;  \
  }
#define ADD_ID(id, one, type)                                                                                \
  uint32_t hone_facts_add_##one(hone_facts *f, const type *row) {                                            \
    if (!f || !row) return UINT32_MAX;                                                                       \
    return hn_facts_put(f, HN_FACTS_##id, row) ? (uint32_t)f->table[HN_FACTS_##id].len : 0;                  \
  }
#define ADD_BY_HAND(id, one, type)
#define TABLE(id, one, type, key, layout, adder, about) ADD_##adder(id, one, type)
#include "insight/facts.def"

#define OBJECT(id, type, key, about)                                                                         \
  void hone_facts_set_##id(hone_facts *f, const type *given) {                                               \
    if (f && given) hn_facts_put(f, HN_FACTS_##id, given);                                                   \
  }
#include "insight/facts.def"

void hone_facts_raise_roof(hone_facts *f, const hone_roof *roof) {
  if (!f || !roof) return;
  hone_roof *roofs = f->table[HN_FACTS_roofs].rows;
  for (size_t i = 0; roof->name && i < f->table[HN_FACTS_roofs].len; i++) {
    hone_roof *r = &roofs[i];
    if (r->threads != roof->threads || strcmp(r->name, roof->name) != 0) continue;
    if (roof->gflops > r->gflops) r->gflops = roof->gflops;
    if (roof->gbs > r->gbs) r->gbs = roof->gbs;
    return;
  }
  hone_facts_add_roof(f, roof);
}

void hone_facts_name_lane(hone_facts *f, int32_t lane, const char *name) {
  if (f) hn_facts_put(f, HN_FACTS_lanes, &(hone_lane){lane, name});
}

void hone_facts_add_wall(hone_facts *f, int32_t iteration, int64_t wall_ns) {
  if (f) hn_facts_put(f, HN_FACTS_walls, &(hone_wall){iteration, wall_ns});
}

void hone_facts_add_version(hone_facts *f, const char *what, const char *version) {
  if (f) hn_facts_put(f, HN_FACTS_versions, &(hone_note){what, version});
}

void hone_facts_add_unmeasured(hone_facts *f, const char *what, const char *why) {
  if (f) hn_facts_put(f, HN_FACTS_unmeasured, &(hone_note){what, why});
}

void hone_facts_add_option(hone_facts *f, const char *name, const char *value) {
  if (f) hn_facts_put(f, HN_FACTS_options, &(hone_note){name, value});
}

void hone_facts_add_buffer(hone_facts *f, const hone_span_buffer *buffer) {
  if (!f || !buffer) return;
  const size_t first = f->table[HN_FACTS_spans].len;
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
  hone_span *spans = f->table[HN_FACTS_spans].rows;
  for (size_t i = f->table[HN_FACTS_spans].len; i-- > first;) {
    hone_span *s = &spans[i];
    if (s->kind == HONE_SPAN_RUN) {
      run = s->id;
      continue;
    }
    const hone_span *parent = run ? &spans[run - 1] : NULL;
    if (parent && parent->iteration == s->iteration && parent->start_ns <= s->start_ns &&
        s->end_ns <= parent->end_ns)
      s->parent = run;
  }
  f->dropped += (double)buffer->dropped;
  f->meta.dropped_spans += (double)buffer->dropped;
}

/* ---- checking ---- */

/* Sums of many such times are still numbers. */
static bool is_time_ms(double ms) { return ms >= 0 && ms < 1e13; }

/* What the list cannot say: why a row is wrong by itself, or NULL. */
static const char *doubt_span(const void *row) {
  const hone_span *s = row;
  return s->end_ns < s->start_ns ? "a span ends before it starts" : NULL;
}

static const char *doubt_stats(const void *row) {
  const hone_step_stats *s = row;
  return is_time_ms(s->total_ms) && is_time_ms(s->median_ms) && is_time_ms(s->min_ms) && is_time_ms(s->max_ms)
             ? NULL
             : "the statistics of a step hold a time that is negative, no number or beyond centuries";
}

static const char *(*const doubt[HN_FACTS_COUNT])(const void *row) = {
    [HN_FACTS_spans] = doubt_span,
    [HN_FACTS_step_stats] = doubt_stats,
};

/* A place that is none, or in the table; ids are places counted from 1. */
static hone_status check_place(const hone_facts *f, const hn_fact_member *m, int64_t place,
                               hone_error *error) {
  const int64_t rows = (int64_t)f->table[m->of].len, first = m->store == HN_STORE_U32 ? 1 : 0;
  const bool none = place == first - 1 && m->when != HN_FACT_REQUIRED && m->word != HN_FACT_INDICES;
  if (none || (place >= first && place < rows + first)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "\"%s\" is %lld, which points outside of \"%s\"", m->key,
                 (long long)place, hn_fact_tables[m->of].key);
}

static hone_status check_member(const hone_facts *f, const hn_fact_member *m, const void *row,
                                hone_error *error) {
  if (m->word == HN_FACT_INDICES) {
    size_t count;
    const int32_t *list = hn_fact_list(m, row, &count);
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && !status; i++) status = check_place(f, m, list[i], error);
    return status;
  }
  if (m->word == HN_FACT_INTEGER && m->of) return check_place(f, m, hn_fact_integer(m, row), error);
  if (m->word != HN_FACT_ENUM) return HONE_OK;
  const int64_t value = hn_fact_integer(m, row);
  if (value >= 0 && value <= m->high) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "\"%s\" is %lld, which stands for no word", m->key,
                 (long long)value);
}

static hone_status check_row(const hone_facts *f, hn_fact_id id, const void *row, hone_error *error) {
  hone_status status = HONE_OK;
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key && !status; m++)
    status = check_member(f, m, row, error);
  const char *wrong = !status && doubt[id] ? doubt[id](row) : NULL;
  return wrong ? hn_fail(error, HONE_ERROR_INPUT, "%s", wrong) : status;
}

hone_status hone_facts_check(const hone_facts *f, hone_error *error) {
  if (!f) return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_check: f may not be NULL");
  if (f->failed) return hn_fail_memory(error, f->arena.used, "the facts of a run");
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++)
    for (size_t i = 0; i < f->table[id].len; i++) {
      const void *row = (const char *)f->table[id].rows + i * hn_fact_tables[id].size;
      hone_status status = check_row(f, id, row, error);
      if (!status) continue;
      hn_error_where(error, "facts: %s[%zu]", hn_fact_tables[id].key, i);
      return status;
    }
  return HONE_OK;
}

/* ---- reading ---- */

const void *hn_facts_rows(const hone_facts *f, hn_fact_id id, size_t *count) {
  const bool object = hn_fact_tables[id].layout == HN_FACT_OBJECT;
  if (count) *count = !f ? 0 : object ? 1 : f->table[id].len;
  return !f ? NULL : object ? (const void *)((const char *)f + objects[id]) : f->table[id].rows;
}

#define OBJECT(id, type, key, about)                                                                         \
  const type *hone_facts_get_##id(const hone_facts *f) { return hn_facts_rows(f, HN_FACTS_##id, NULL); }
#define TABLE(id, one, type, key, layout, adder, about)                                                      \
  const type *hone_facts_##id(const hone_facts *f, size_t *count) {                                          \
    return hn_facts_rows(f, HN_FACTS_##id, count);                                                           \
  }
#include "insight/facts.def"

const char *hone_facts_lane_name(const hone_facts *f, int32_t lane) {
  size_t n;
  const hone_lane *lanes = hone_facts_lanes(f, &n);
  for (size_t i = 0; i < n; i++)
    if (lanes[i].lane == lane) return lanes[i].name;
  return NULL;
}
