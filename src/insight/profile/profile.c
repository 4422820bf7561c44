/* Facts -> profile: gathers each measured iteration, sweeps it, and averages. */
#include <hone/insight.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/vec.h"
#include "insight/profile/bound.h"
#include "insight/profile/layers.h"
#include "insight/profile/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct owned_profile {
  hone_profile view; /* first: the pointer that callers hold */
  hn_arena arena;
} owned_profile;

/* What no span covers of one iteration. */
typedef struct pauses {
  double ns, wall_ns, longest_ns;
  const char *before; /* name of the span behind the longest; NULL: end of the run */
} pauses;

typedef struct builder {
  const hone_facts *facts;
  hone_profile *p;
  hn_layer_table layers;
  HN_VEC(const hone_span *) spans; /* of measured iterations, sorted by iteration */
  HN_VEC(const hone_wall *) outer; /* sorted by iteration */
  HN_VEC(double) walls;
  HN_VEC(pauses) pauses; /* of each iteration */
  double *exclusive;
  double sums[HONE_SPAN_KIND_COUNT];    /* exclusive ns inside the run, all iterations */
  double outside[HONE_SPAN_KIND_COUNT]; /* exclusive ns of spans outside the run (pre, post, copies) */
  double gaps, residual, wall, longest_gap;
  size_t with_outer;
} builder;

static int by_iteration(const void *pa, const void *pb) {
  const hone_span *a = *(const hone_span *const *)pa, *b = *(const hone_span *const *)pb;
  if (a->iteration != b->iteration) return a->iteration < b->iteration ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static int by_wall_iteration(const void *pa, const void *pb) {
  const hone_wall *a = *(const hone_wall *const *)pa, *b = *(const hone_wall *const *)pb;
  if (a->iteration != b->iteration) return a->iteration < b->iteration ? -1 : 1;
  return a < b ? -1 : a > b; /* rows of one table */
}

static hone_status gather(builder *b, hone_error *error) {
  size_t n, walls;
  const hone_wall *wall = hone_facts_walls(b->facts, &walls);
  for (size_t i = 0; i < walls; i++)
    if (!hn_vec_push(&b->outer, &wall[i])) return hn_fail_memory(error, walls * sizeof(void *), "the walls");
  if (walls) qsort(b->outer.ptr, walls, sizeof *b->outer.ptr, by_wall_iteration);
  const hone_span *spans = hone_facts_spans(b->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (spans[i].iteration >= 0 && !hn_vec_push(&b->spans, &spans[i]))
      return hn_fail_memory(error, n * sizeof(void *), "the profile");
  if (b->spans.len) qsort(b->spans.ptr, b->spans.len, sizeof *b->spans.ptr, by_iteration);
  b->exclusive = hn_calloc(b->spans.len, 2 * sizeof *b->exclusive);
  return b->exclusive ? HONE_OK : hn_fail_memory(error, n * sizeof *b->exclusive, "the profile");
}

/* The outer clock's reading of an iteration (of several the first); negative when there is none. */
static double outer_wall(const builder *b, int32_t iteration) {
  size_t low = 0, high = b->outer.len;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (b->outer.ptr[middle]->iteration < iteration)
      low = middle + 1;
    else
      high = middle;
  }
  return low < b->outer.len && b->outer.ptr[low]->iteration == iteration ? (double)b->outer.ptr[low]->wall_ns
                                                                         : -1;
}

/* The window that the closure explains: the RUN span, or without one first to last time stamp. */
static bool find_window(const hone_span *const *spans, size_t n, int64_t *low, int64_t *high) {
  bool run = false;
  *low = INT64_MAX;
  *high = INT64_MIN;
  for (size_t i = 0; i < n; i++) {
    bool is_run = spans[i]->kind == HONE_SPAN_RUN;
    if (run && !is_run) continue;
    if (is_run && !run) {
      run = true;
      *low = INT64_MAX;
      *high = INT64_MIN;
    }
    if (spans[i]->start_ns < *low) *low = spans[i]->start_ns;
    if (spans[i]->end_ns > *high) *high = spans[i]->end_ns;
  }
  return run;
}

static const char *span_name(const hone_facts *facts, const hone_span *span) {
  if (!span) return NULL;
  size_t steps;
  const hone_step_fact *table = hone_facts_steps(facts, &steps);
  return span->name || span->step < 0 ? span->name : table[span->step].name;
}

static hone_status add_iteration(builder *b, const hone_span *const *spans, size_t n, hone_error *error) {
  int64_t low, high;
  find_window(spans, n, &low, &high);
  hn_sweep inside;
  hone_status status = hn_sweep_run(spans, n, low, high, b->exclusive, &inside, error);
  if (!status) status = hn_layers_add(&b->layers, b->facts, spans, n, b->exclusive, error);
  if (status) return status;
  bool any_outside = false;
  for (size_t i = 0; i < n; i++) {
    b->sums[spans[i]->kind] += b->exclusive[i];
    any_outside = any_outside || spans[i]->start_ns < low || spans[i]->end_ns > high;
  }
  if (any_outside) {
    int64_t first = low, last = high;
    for (size_t i = 0; i < n; i++) {
      if (spans[i]->start_ns < first) first = spans[i]->start_ns;
      if (spans[i]->end_ns > last) last = spans[i]->end_ns;
    }
    double *whole = b->exclusive + b->spans.len;
    hn_sweep all;
    status = hn_sweep_run(spans, n, first, last, whole, &all, error);
    if (status) return status;
    for (size_t i = 0; i < n; i++) b->outside[spans[i]->kind] += whole[i] - b->exclusive[i];
  }
  double explained = (double)(high - low), wall = outer_wall(b, spans[0]->iteration);
  if (wall >= 0) {
    b->with_outer++;
    b->residual += HN_FAULT("closure_residual_hidden") ? 0 : wall - explained;
  } else
    wall = explained;
  b->gaps += HN_FAULT("closure_longest_gap_only") ? inside.longest_gap : inside.gaps;
  b->wall += wall;
  pauses own = {inside.gaps, explained, inside.longest_gap, span_name(b->facts, inside.after_longest_gap)};
  for (size_t i = 0; i < n; i++)
    if (spans[i]->kind == HONE_SPAN_IDLE) own.ns += b->exclusive[i];
  if (inside.longest_gap > b->longest_gap) {
    b->longest_gap = inside.longest_gap;
    b->p->closure.longest_gap_before = span_name(b->facts, inside.after_longest_gap);
  }
  b->p->iterations++;
  if (!hn_vec_push(&b->walls, wall / 1e6) || !hn_vec_push(&b->pauses, own))
    return hn_fail_memory(error, b->walls.len * sizeof(double), "the walls");
  return HONE_OK;
}

/* No time line at all: one iteration of the steps' averages, and the outer walls where there are some. */
static hone_status add_totals(builder *b, hone_error *error) {
  size_t n, walls;
  const hone_step_stats *stats = hone_facts_step_stats(b->facts, &n);
  const hone_wall *wall = hone_facts_walls(b->facts, &walls);
  double sum = 0, outer = 0;
  for (size_t i = 0; i < n; i++) {
    const double ns = 1e6 * stats[i].total_ms / (double)stats[i].runs;
    b->sums[stats[i].kind] += ns;
    sum += ns;
  }
  for (size_t i = 0; i < walls; i++) {
    outer += (double)wall[i].wall_ns / (double)walls;
    if (!hn_vec_push(&b->walls, (double)wall[i].wall_ns / 1e6))
      return hn_fail_memory(error, walls * sizeof(double), "the walls");
  }
  if (!walls && !hn_vec_push(&b->walls, sum / 1e6)) return hn_fail_memory(error, sizeof(double), "the walls");
  /* Layers that were timed one by one may add up to more than the run; then they share what it takes. */
  const double fit = walls && sum > outer ? outer / sum : 1;
  for (size_t kind = 0; kind < HONE_SPAN_KIND_COUNT; kind++) b->sums[kind] *= fit;
  b->wall = walls ? outer : sum;
  b->residual = walls ? outer - sum * fit : 0;
  b->p->iterations = 1;
  b->with_outer = walls ? 1 : 0;
  return HONE_OK;
}

/* An iteration whose RUN span is missing while others have theirs was cut off (buffer full, interrupted):
 * leave it out. */
static hone_status add_iterations(builder *b, hone_error *error) {
  bool some_run = false;
  for (size_t i = 0; i < b->spans.len; i++) some_run = some_run || b->spans.ptr[i]->kind == HONE_SPAN_RUN;
  for (size_t i = 0, n; i < b->spans.len; i += n) {
    bool has_run = false;
    for (n = 0; i + n < b->spans.len && b->spans.ptr[i + n]->iteration == b->spans.ptr[i]->iteration; n++)
      has_run = has_run || b->spans.ptr[i + n]->kind == HONE_SPAN_RUN;
    if (some_run && !has_run) continue;
    hone_status status = add_iteration(b, b->spans.ptr + i, n, error);
    if (status) return status;
  }
  if (!b->p->iterations && b->layers.has_totals) return add_totals(b, error);
  if (b->p->iterations) return HONE_OK;
  hone_status status = hn_fail(error, HONE_ERROR_INPUT, "the facts hold no complete measured iteration");
  hn_error_hint(error,
                "run at least one iteration after the warm-up; an interrupted run keeps only whole ones");
  return status;
}

static int by_pauses(const void *pa, const void *pb) {
  const pauses *a = pa, *b = pb;
  const double x = a->ns * b->wall_ns, y = b->ns * a->wall_ns;
  return (x > y) - (x < y);
}

static void find_typical_pauses(builder *b) {
  if (!b->pauses.len) return;
  qsort(b->pauses.ptr, b->pauses.len, sizeof *b->pauses.ptr, by_pauses);
  const pauses *typical = &b->pauses.ptr[(b->pauses.len - 1) / 2];
  hone_closure *c = &b->p->closure;
  c->typical_gaps_ms = typical->ns / 1e6;
  c->typical_gaps_pct = typical->wall_ns > 0 ? 100 * typical->ns / typical->wall_ns : 0;
  c->typical_longest_gap_ms = typical->longest_ns / 1e6;
  c->typical_longest_gap_before = typical->before;
}

static void finish_closure(builder *b) {
  hone_closure *c = &b->p->closure;
  double scale = 1e-6 / (double)b->p->iterations;
  c->has_outer_clock = b->with_outer == b->p->iterations;
  c->wall_ms = b->wall * scale;
  c->layers_ms = b->sums[HONE_SPAN_KERNEL] * scale;
  c->reformats_ms = HN_FAULT("closure_reformats") ? 0 : b->sums[HONE_SPAN_REFORMAT] * scale;
  c->copies_ms =
      (b->sums[HONE_SPAN_COPY] + b->sums[HONE_SPAN_COPY_H2D] + b->sums[HONE_SPAN_COPY_D2H]) * scale;
  c->sync_ms = b->sums[HN_FAULT("closure_sync_is_host") ? HONE_SPAN_HOST : HONE_SPAN_SYNC] * scale;
  c->host_ms = b->sums[HONE_SPAN_HOST] * scale;
  c->pre_ms = b->sums[HONE_SPAN_PRE] * scale;
  c->post_ms = b->sums[HONE_SPAN_POST] * scale;
  c->gaps_ms = (b->gaps + b->sums[HONE_SPAN_IDLE]) * scale;
  c->residual_ms = b->residual * scale;
  c->residual_pct = c->wall_ms > 0 ? 100 * c->residual_ms / c->wall_ms : 0;
  c->longest_gap_ms = b->longest_gap / 1e6;
  double sum = c->layers_ms + c->reformats_ms + c->copies_ms + c->sync_ms + c->host_ms + c->pre_ms +
               c->post_ms + c->gaps_ms + c->residual_ms;
  c->imbalance_ms = fabs(sum - c->wall_ms);
  find_typical_pauses(b);
}

static void finish_stages(builder *b) {
  const hone_closure *c = &b->p->closure;
  hone_stages *s = &b->p->stages;
  double scale = 1e-6 / (double)b->p->iterations;
  s->pre_ms = c->pre_ms + b->outside[HONE_SPAN_PRE] * scale;
  s->post_ms = c->post_ms + b->outside[HONE_SPAN_POST] * scale;
  s->h2d_ms = (b->sums[HONE_SPAN_COPY_H2D] + b->outside[HONE_SPAN_COPY_H2D]) * scale;
  s->d2h_ms = (b->sums[HONE_SPAN_COPY_D2H] + b->outside[HONE_SPAN_COPY_D2H]) * scale;
  s->infer_ms = c->layers_ms + c->reformats_ms + c->host_ms + b->sums[HONE_SPAN_COPY] * scale;
  s->idle_ms = c->gaps_ms + c->sync_ms + c->residual_ms;
  s->total_ms = s->pre_ms + s->h2d_ms + s->infer_ms + s->d2h_ms + s->post_ms + s->idle_ms;
}

static void finish_throughput(hone_profile *p) {
  double batch = hone_facts_get_meta(p->facts)->batch;
  if (batch < 1) batch = 1;
  const hone_stages *s = &p->stages;
  const struct {
    const char *name;
    double ms;
  } stages[] = {{"pre", s->pre_ms},
                {"h2d", s->h2d_ms},
                {"infer", s->infer_ms},
                {"d2h", s->d2h_ms},
                {"post", s->post_ms}};
  double slowest = 0;
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    if (stages[i].ms > slowest) {
      slowest = stages[i].ms;
      p->throughput.slowest_stage = stages[i].name;
    }
  if (p->closure.wall_ms > 0) p->throughput.measured_fps = 1e3 * batch / p->closure.wall_ms;
  if (s->total_ms > 0) p->throughput.serial_fps = 1e3 * batch / s->total_ms;
  if (slowest > 0) p->throughput.overlapped_fps = 1e3 * batch / slowest;
}

/* Codes on units for integers; the scalar reference is no tactic, and codes as floats are no integers. */
static bool on_integers(const hone_step_fact *s) {
  const char *word = s->arithmetic ? s->arithmetic : s->dtype ? s->dtype : "";
  return !s->is_reference && (!strncmp(word, "int8", 4) || !strcmp(word, "u8") || !strcmp(word, "i8"));
}

static void count_macs(hone_profile *p) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(p->facts, &n);
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    if (l->step < 0 || (size_t)l->step >= n) continue;
    const double macs = (double)steps[l->step].macs * l->calls;
    p->macs += macs;
    if (on_integers(&steps[l->step])) p->integer_macs += macs;
  }
}

static hone_status finish(builder *b, const char *filter, hn_arena *arena, hone_error *error) {
  hone_profile *p = b->p;
  finish_closure(b);
  finish_stages(b);
  finish_throughput(p);
  if (!hone_stats_compute(b->walls.ptr, b->walls.len, &p->wall) ||
      !(p->walls_ms = hn_arena_memdup(arena, b->walls.ptr, b->walls.len * sizeof *b->walls.ptr)))
    return hn_fail_memory(error, b->walls.len * sizeof *b->walls.ptr, "the walls");
  hone_status status = hn_layers_finish(&b->layers, filter, arena, p, error);
  if (status) return status;
  count_macs(p);
  if (p->closure.wall_ms > 0) {
    p->gflops = p->flops / p->closure.wall_ms / 1e6;
    p->gbs = p->bytes / p->closure.wall_ms / 1e6;
  }
  const hone_roof *compute = hn_roof_compute(b->facts, NULL), *dram = hn_roof_dram(b->facts);
  if (compute && dram) p->ridge = compute->gflops / dram->gbs;
  return HONE_OK;
}

hone_status hone_profile_create(const hone_facts *facts, const hone_profile_options *options,
                                hone_profile **profile, hone_error *error) {
  if (!facts || !profile)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_profile_create: facts and profile may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *profile = NULL;
  builder b = {.facts = facts};
  owned_profile *owned = NULL;
  hone_status status = hone_facts_check(facts, error);
  if (status) goto done;
  owned = hn_calloc(1, sizeof *owned);
  if (!owned) {
    status = hn_fail_memory(error, sizeof *owned, "a profile");
    goto done;
  }
  owned->view.facts = facts;
  b.p = &owned->view;
  status = hn_layers_begin(&b.layers, facts, error);
  if (!status) status = gather(&b, error);
  if (!status) status = add_iterations(&b, error);
  if (!status) status = finish(&b, options ? options->filter : NULL, &owned->arena, error);
done:
  status = hn_settle(status, lost, error);
  hn_layers_free(&b.layers);
  hn_vec_free(&b.spans);
  hn_vec_free(&b.outer);
  hn_vec_free(&b.walls);
  hn_vec_free(&b.pauses);
  hn_free(b.exclusive);
  if (status && owned) {
    hn_arena_free(&owned->arena);
    hn_free(owned);
  } else if (!status)
    *profile = &owned->view;
  return status;
}

void hone_profile_destroy(hone_profile *profile) {
  owned_profile *owned = (owned_profile *)profile;
  if (!owned) return;
  hn_arena_free(&owned->arena);
  hn_free(owned);
}
