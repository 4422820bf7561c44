/* Two profiles -> rows. Layers and the nodes they execute form a graph; its connected parts are the rows. */
#include <hone/compare.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quantile.h"
#include "base/vec.h"
#include "insight/profile/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE, AFTER, SIDES };

typedef struct owned_comparison {
  hone_comparison view; /* first: the pointer that callers hold */
  hn_arena arena;
} owned_comparison;

/* Layers of both sides, numbered through: those before come first. */
typedef struct joiner {
  const hone_profile *side[SIDES];
  size_t n; /* layers of both */
  uint32_t *parent;
  const char **by; /* of each layer: what joined it to another; NULL: nothing did */
  hn_arena *arena;
  HN_VEC(hone_compare_row) rows;
  hone_compare_options o;
} joiner;

static const hone_layer *layer(const joiner *j, size_t i) {
  size_t first = j->side[BEFORE]->layer_count;
  return i < first ? &j->side[BEFORE]->layers[i] : &j->side[AFTER]->layers[i - first];
}

static int side_of(const joiner *j, size_t i) { return i < j->side[BEFORE]->layer_count ? BEFORE : AFTER; }

static uint32_t root(joiner *j, uint32_t i) {
  while (j->parent[i] != i) i = j->parent[i] = j->parent[j->parent[i]];
  return i;
}

static void join(joiner *j, uint32_t a, uint32_t b, const char *by) {
  uint32_t x = root(j, a), y = root(j, b);
  if (side_of(j, a) != side_of(j, b)) {
    if (!j->by[a]) j->by[a] = by;
    if (!j->by[b]) j->by[b] = by;
  }
  if (x == y) return;
  if (x < y)
    j->parent[y] = x;
  else
    j->parent[x] = y;
}

/* A name joins the first layer that has it with every later one. A stored index is one more than it is, so
 * that none is NULL. */
static bool join_by(joiner *j, hn_map *seen, const char *name, uint32_t i, const char *by) {
  if (!name || !*name) return true;
  void *first = hn_map_get(seen, name);
  if (first) {
    join(j, (uint32_t)((uintptr_t)first - 1), i, by);
    return true;
  }
  return hn_map_set(seen, name, (void *)(uintptr_t)(i + 1));
}

/* A layer without nodes is found by its name among the nodes, too: another tool may know only that. */
static bool join_names(joiner *j) {
  hn_map seen = {0};
  bool fine = true;
  for (uint32_t i = 0; i < j->n && fine; i++) {
    const hone_layer *l = layer(j, i);
    for (size_t k = 0; k < l->onnx_node_count && fine; k++)
      fine = join_by(j, &seen, l->onnx_nodes[k], i, "ONNX node");
    if (!l->onnx_node_count) fine = join_by(j, &seen, l->name, i, "name");
  }
  hn_map_free(&seen);
  return fine;
}

static const hone_step_fact *step_of(const joiner *j, size_t i) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(j->side[side_of(j, i)]->facts, &n);
  int32_t step = layer(j, i)->step;
  return step >= 0 && (size_t)step < n ? &steps[step] : NULL;
}

/* What ONNX Runtime calls an operator that took its neighbours in, or counts in bytes, is still that
 * operator. */
static const char *plain_type(const char *type) {
  static const char *const prefixes[] = {"Fused", "QLinear", "Nhwc"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    size_t n = strlen(prefixes[i]);
    if (strncmp(type, prefixes[i], n) == 0 && type[n]) type += n;
  }
  return type;
}

/* What layers of different names have in common; NULL when out of memory. */
static const char *kind_key(joiner *j, size_t i, bool with_shape) {
  const hone_step_fact *s = step_of(j, i);
  const char *shape = with_shape && s && s->shape_out ? s->shape_out : "";
  return hn_arena_printf(j->arena, "%s\x1f%s", plain_type(layer(j, i)->type), shape);
}

typedef struct kind_group {
  HN_VEC(uint32_t) members[SIDES];
} kind_group;

/* What joined a part of both sides holds for all of its layers. */
static bool spread(joiner *j) {
  const char **of = HN_NEW_ARRAY(j->arena, const char *, j->n + 1);
  if (!of) return false;
  for (uint32_t i = 0; i < j->n; i++)
    if (j->by[i] && !of[root(j, i)]) of[root(j, i)] = j->by[i];
  for (uint32_t i = 0; i < j->n; i++)
    if (!j->by[i]) j->by[i] = of[root(j, i)];
  return true;
}

/* Joins what stands alone on one side with what does on the other, where both have as many of a kind. */
static bool join_kinds(joiner *j, bool with_shape) {
  hn_map groups = {0};
  HN_VEC(kind_group *) list = {0};
  bool fine = true;
  for (uint32_t i = 0; i < j->n && fine; i++) {
    if (j->by[i]) continue;
    const char *key = kind_key(j, i, with_shape);
    kind_group *g = key ? hn_map_get(&groups, key) : NULL;
    if (key && !g) {
      g = HN_NEW(j->arena, kind_group);
      if (!g || !hn_map_set(&groups, key, g) || !hn_vec_push(&list, g)) g = NULL;
    }
    fine = g && hn_vec_push(&g->members[side_of(j, i)], i);
  }
  for (size_t k = 0; k < list.len; k++) {
    kind_group *g = list.ptr[k];
    if (g->members[BEFORE].len == g->members[AFTER].len)
      for (size_t i = 0; i < g->members[BEFORE].len; i++)
        join(j, g->members[BEFORE].ptr[i], g->members[AFTER].ptr[i], "type and order");
    hn_vec_free(&g->members[BEFORE]);
    hn_vec_free(&g->members[AFTER]);
  }
  hn_vec_free(&list);
  hn_map_free(&groups);
  return fine;
}

/* ---- one row ---- */

typedef struct pile {
  const hone_layer **layers;
  size_t count;
  double *sums;            /* per iteration, of all layers; NULL: not every layer has samples */
  hone_sample_stats stats; /* of the sums; else their means and deviations added up */
} pile;

static bool add_up(joiner *j, pile *p) {
  size_t n = p->count ? p->layers[0]->stats.count : 0;
  bool samples = n > 0;
  for (size_t i = 0; i < p->count; i++)
    samples = samples && p->layers[i]->samples_ms && p->layers[i]->stats.count == n;
  if (samples) {
    p->sums = HN_NEW_ARRAY(j->arena, double, n);
    if (!p->sums) return false;
    for (size_t i = 0; i < p->count; i++)
      for (size_t k = 0; k < n; k++) p->sums[k] += p->layers[i]->samples_ms[k];
    return hone_stats_compute(p->sums, n, &p->stats);
  }
  /* Layers of one run rise and fall together, so deviations add up, not variances: the cautious side. */
  for (size_t i = 0; i < p->count; i++) {
    const hone_sample_stats *s = &p->layers[i]->stats;
    p->stats.mean += p->layers[i]->time_ms;
    p->stats.p50 += s->count && s->p50 > 0 ? s->p50 : p->layers[i]->time_ms;
    p->stats.stddev += s->stddev;
    p->stats.count = i && p->stats.count < s->count ? p->stats.count : s->count;
  }
  return true;
}

static hone_difference differ(const joiner *j, const hone_sample_stats *a, const double *sa,
                              const hone_sample_stats *b, const double *sb) {
  hone_difference d = {.before_ms = a->p50, .after_ms = b->p50, .delta_ms = b->p50 - a->p50};
  d.delta_pct = a->p50 > 0 ? 100 * d.delta_ms / a->p50 : 0;
  d.p_value = sa && sb ? hn_rank_test(sa, a->count, sb, b->count) : -1;
  if (d.p_value < 0 && sa && sb) d.p_value = hn_rank_test_exact(sa, a->count, sb, b->count, j->o.alpha);
  if (d.p_value < 0) d.p_value = hn_welch_test(a, b);
  return d;
}

/* `limit`: the largest p value that still counts. */
static hone_change judge(const joiner *j, const hone_difference *d, double limit) {
  const bool from_nothing = d->before_ms <= 0 && d->after_ms > 0; /* no share says how much that is */
  if (!from_nothing && fabs(d->delta_pct) < j->o.min_effect_pct) return HONE_CHANGE_SAME;
  if (d->p_value < 0) return HONE_CHANGE_UNCLEAR;
  if (d->p_value > limit) return HONE_CHANGE_SAME;
  return d->delta_ms > 0 ? HONE_CHANGE_SLOWER : HONE_CHANGE_FASTER;
}

static hone_alignment align(size_t before, size_t after) {
  if (!before) return HONE_ALIGNMENT_NEW;
  if (!after) return HONE_ALIGNMENT_GONE;
  if (before == 1 && after == 1) return HONE_ALIGNMENT_ONE;
  return before > after   ? HONE_ALIGNMENT_FUSED
         : before < after ? HONE_ALIGNMENT_SPLIT
                          : HONE_ALIGNMENT_REGROUPED;
}

static bool make_row(joiner *j, const uint32_t *members, size_t n) {
  pile piles[SIDES] = {0};
  hone_compare_row row = {0};
  const hone_layer *slowest = NULL;
  int from = AFTER;
  for (size_t i = 0; i < n; i++) {
    if (side_of(j, members[i]) == BEFORE) from = BEFORE;
    if (j->by[members[i]]) row.aligned_by = j->by[members[i]];
  }
  for (int s = 0; s < SIDES; s++) {
    piles[s].layers = HN_NEW_ARRAY(j->arena, const hone_layer *, n);
    if (!piles[s].layers) return false;
    for (size_t i = 0; i < n; i++) {
      if (side_of(j, members[i]) != s) continue;
      const hone_layer *l = layer(j, members[i]);
      piles[s].layers[piles[s].count++] = l;
      if (s == from && (!slowest || l->time_ms > slowest->time_ms)) slowest = l;
    }
    if (!add_up(j, &piles[s])) return false;
  }
  row.name = slowest->name;
  row.type = slowest->type;
  row.alignment = align(piles[BEFORE].count, piles[AFTER].count);
  if (row.alignment == HONE_ALIGNMENT_NEW || row.alignment == HONE_ALIGNMENT_GONE) row.aligned_by = NULL;
  row.time = differ(j, &piles[BEFORE].stats, piles[BEFORE].sums, &piles[AFTER].stats, piles[AFTER].sums);
  row.before = piles[BEFORE].layers;
  row.before_count = piles[BEFORE].count;
  row.after = piles[AFTER].layers;
  row.after_count = piles[AFTER].count;
  return hn_vec_push(&j->rows, row);
}

static int by_root(const void *pa, const void *pb, void *user) {
  joiner *j = user;
  uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb, x = root(j, a), y = root(j, b);
  return x != y ? (x < y ? -1 : 1) : a < b ? -1 : a > b;
}

static bool make_rows(joiner *j) {
  uint32_t *order = HN_NEW_ARRAY(j->arena, uint32_t, j->n + 1);
  if (!order) return false;
  for (uint32_t i = 0; i < j->n; i++) order[i] = i;
  qsort_r(order, j->n, sizeof *order, by_root, j);
  for (size_t i = 0, n; i < j->n; i += n) {
    for (n = 1; i + n < j->n && root(j, order[i + n]) == root(j, order[i]); n++) {
    }
    if (!make_row(j, order + i, n)) return false;
  }
  return true;
}

/* ---- many rows: some p values are small by chance ---- */

/* Benjamini and Hochberg: the largest p(k) with p(k) <= k / n * alpha; below it the share of false
 * discoveries is at most alpha. */
static bool false_discovery_limit(const joiner *j, double *limit) {
  double *p = hn_malloc((j->rows.len + 1) * sizeof *p);
  size_t n = 0;
  *limit = -1;
  if (!p) return false;
  for (size_t i = 0; i < j->rows.len; i++)
    if (j->rows.ptr[i].time.p_value >= 0) p[n++] = j->rows.ptr[i].time.p_value;
  hn_ascend(p, n);
  for (size_t k = n; k > 0 && *limit < 0; k--)
    if (p[k - 1] <= (double)k / (double)n * j->o.alpha) *limit = p[k - 1];
  hn_free(p);
  return true;
}

static int larger_first(const void *pa, const void *pb) {
  const hone_compare_row *a = pa, *b = pb;
  double x = fabs(a->time.delta_ms), y = fabs(b->time.delta_ms);
  if (x != y) return x > y ? -1 : 1;
  return strcmp(a->name, b->name);
}

static bool judge_rows(joiner *j, hone_comparison *c) {
  double limit;
  if (!false_discovery_limit(j, &limit)) return false;
  for (size_t i = 0; i < j->rows.len; i++) {
    hone_compare_row *r = &j->rows.ptr[i];
    bool lone = r->alignment == HONE_ALIGNMENT_NEW || r->alignment == HONE_ALIGNMENT_GONE;
    c->added += r->alignment == HONE_ALIGNMENT_NEW;
    c->gone += r->alignment == HONE_ALIGNMENT_GONE;
    c->fused += !lone && r->alignment != HONE_ALIGNMENT_ONE;
    if (lone) { /* there is nothing to test: the time came, or went */
      r->time.p_value = -1;
      r->time.change = r->alignment == HONE_ALIGNMENT_NEW ? HONE_CHANGE_SLOWER : HONE_CHANGE_FASTER;
      continue;
    }
    r->time.change = judge(j, &r->time, limit);
    c->slower += r->time.change == HONE_CHANGE_SLOWER;
    c->faster += r->time.change == HONE_CHANGE_FASTER;
    c->same += r->time.change == HONE_CHANGE_SAME;
    c->unclear += r->time.change == HONE_CHANGE_UNCLEAR;
  }
  qsort(j->rows.ptr, j->rows.len, sizeof *j->rows.ptr, larger_first);
  c->rows = hn_arena_memdup(j->arena, j->rows.ptr, j->rows.len * sizeof *j->rows.ptr);
  c->row_count = j->rows.len;
  return c->rows || !j->rows.len;
}

/* ---- are the two comparable at all? ---- */

static const char *known(const char *s) { return s && *s ? s : NULL; }

static bool warn(joiner *j, hone_comparison *c, const char *what, const char *a, const char *b,
                 const char *so) {
  if (!known(a) || !known(b) || strcmp(a, b) == 0) return true;
  const char *text = hn_arena_printf(j->arena, "%s differs: %s before, %s after%s", what, a, b, so);
  const char **list = (const char **)c->warnings;
  if (text) list[c->warning_count++] = text;
  return text != NULL;
}

static bool warn_number(joiner *j, hone_comparison *c, const char *what, double a, double b) {
  const char *x = a > 0 ? hn_arena_printf(j->arena, "%g", a) : "",
             *y = b > 0 ? hn_arena_printf(j->arena, "%g", b) : "";
  return x && y && warn(j, c, what, x, y, "");
}

static bool warn_untimed(joiner *j, hone_comparison *c) {
  static const char *const names[SIDES] = {"before", "after"};
  const char **list = (const char **)c->warnings;
  for (int s = 0; s < SIDES; s++) {
    if (j->side[s]->closure.wall_ms > 0) continue;
    const char *text =
        hn_arena_printf(j->arena, "the profile %s holds no times: only its layers can be compared", names[s]);
    if (!text) return false;
    list[c->warning_count++] = text;
  }
  return true;
}

static bool warn_all(joiner *j, hone_comparison *c) {
  const hone_facts_meta *a = hone_facts_get_meta(j->side[BEFORE]->facts);
  const hone_facts_meta *b = hone_facts_get_meta(j->side[AFTER]->facts);
  enum { MOST = 8 };
  c->warnings = HN_NEW_ARRAY(j->arena, const char *, MOST);
  return c->warnings && warn_untimed(j, c) && warn(j, c, "the device", a->device, b->device, "") &&
         warn(j, c, "the tool", a->tool, b->tool, ": each measures layers in its own way") &&
         warn(j, c, "the model's content", a->model_hash, b->model_hash, "") &&
         warn_number(j, c, "the batch", a->batch, b->batch) &&
         warn_number(j, c, "the number of threads", a->threads, b->threads);
}

static hone_status check(joiner *j, const hone_compare_options *o, hone_error *error) {
  j->o = o ? *o : (hone_compare_options){0};
  if (j->o.alpha == 0) j->o.alpha = 0.01;
  if (j->o.min_effect_pct == 0) j->o.min_effect_pct = 5;
  if (!(j->o.alpha > 0 && j->o.alpha < 1) || !(j->o.min_effect_pct > 0 && j->o.min_effect_pct < 1e6))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "a comparison needs 0 < alpha < 1 and a smallest effect above 0 %%");
  if (j->side[BEFORE]->filtered || j->side[AFTER]->filtered)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "filtered profiles cannot be compared: what the filter hides would look new or gone");
  return HONE_OK;
}

static bool build(joiner *j, hone_comparison *c) {
  j->n = j->side[BEFORE]->layer_count + j->side[AFTER]->layer_count;
  j->parent = HN_NEW_ARRAY(j->arena, uint32_t, j->n + 1);
  j->by = HN_NEW_ARRAY(j->arena, const char *, j->n + 1);
  if (!j->parent || !j->by) return false;
  for (uint32_t i = 0; i < j->n; i++) j->parent[i] = i;
  if (!join_names(j) || !spread(j) || !join_kinds(j, true) || !join_kinds(j, false)) return false;
  c->wall = differ(j, &c->before->wall, c->before->walls_ms, &c->after->wall, c->after->walls_ms);
  c->wall.change = judge(j, &c->wall, j->o.alpha);
  return make_rows(j) && judge_rows(j, c) && warn_all(j, c);
}

hone_status hone_compare(const hone_profile *before, const hone_profile *after,
                         const hone_compare_options *options, hone_comparison **comparison,
                         hone_error *error) {
  if (!before || !after || !comparison)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_compare: before, after and comparison may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *comparison = NULL;
  joiner j = {.side = {before, after}};
  hone_status status = check(&j, options, error);
  if (status) return status;
  owned_comparison *owned = hn_calloc(1, sizeof *owned);
  if (!owned) return hn_fail_memory(error, sizeof *owned, "a comparison");
  j.arena = &owned->arena;
  owned->view.before = before;
  owned->view.after = after;
  if (build(&j, &owned->view) && hn_mem_lost() == lost)
    *comparison = &owned->view;
  else {
    status = hn_fail_memory(error, j.n * sizeof(hone_compare_row), "comparing two profiles");
    hone_comparison_destroy(&owned->view);
  }
  hn_vec_free(&j.rows);
  return status;
}

void hone_comparison_destroy(hone_comparison *comparison) {
  owned_comparison *owned = (owned_comparison *)comparison;
  if (!owned) return;
  hn_arena_free(&owned->arena);
  hn_free(owned);
}

HN_NAME_FUNCTION(hone_alignment_name, hone_alignment, HONE_ALIGNMENTS)

HN_NAME_FUNCTION(hone_change_name, hone_change, HONE_CHANGES)
