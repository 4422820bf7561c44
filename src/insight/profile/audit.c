#include "insight/profile/audit.h"

#include "base/error.h"
#include "base/mem.h"
#include "insight/profile/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Residual that clocks and the call itself explain; beyond both limits time is missing from the record. */
#define RESIDUAL_PCT 2.0
#define RESIDUAL_MS 0.005
/* Share of a measured compute roof beyond which the roof, the FLOPs or the clock must be wrong. */
#define IMPOSSIBLE_PCT 130.0

static const char *say(hn_arena *arena, const char *what, const char *name) {
  return name ? hn_arena_printf(arena, "%s '%s'", what, name) : hn_arena_strdup(arena, what);
}

static const char *name_of(const hone_facts *facts, const hone_span *s) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(facts, &n);
  if (s->name || s->step < 0 || (size_t)s->step >= n) return s->name;
  return steps[s->step].name;
}

/* ---- the sums ---- */

static const char *check_sums(const hone_profile *p, const hone_layer *rows, size_t n, hn_arena *arena) {
  const hone_closure *c = &p->closure;
  double rounding = 1e-6 * (c->wall_ms > 0 ? c->wall_ms : 1), sum = 0;
  if (c->imbalance_ms > rounding)
    return hn_arena_printf(arena, "the terms of the closure miss the wall by %.3g ms", c->imbalance_ms);
  for (size_t i = 0; i < n; i++) sum += rows[i].time_ms;
  double terms =
      c->layers_ms + c->reformats_ms + c->copies_ms + c->sync_ms + c->host_ms + c->pre_ms + c->post_ms;
  if (fabs(sum - terms) > rounding)
    return hn_arena_printf(arena, "the layers add up to %.3f ms, the closure's terms to %.3f ms", sum, terms);
  if (c->has_outer_clock && fabs(c->residual_pct) > RESIDUAL_PCT && fabs(c->residual_ms) > RESIDUAL_MS)
    return hn_arena_printf(arena, "%.3f ms of the wall (%.1f %%) are in no time stamp", c->residual_ms,
                           c->residual_pct);
  return NULL;
}

static const char *check_layers(const hone_profile *p, const hone_layer *rows, size_t n, hn_arena *arena) {
  size_t steps;
  const hone_step_fact *table = hone_facts_steps(p->facts, &steps);
  bool *ran = HN_NEW_ARRAY(arena, bool, steps + 1);
  if (!ran) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (rows[i].step >= 0) ran[rows[i].step] = true;
    if (rows[i].compute_pct > IMPOSSIBLE_PCT)
      return hn_arena_printf(arena, "'%s' is faster than the measured peak of the machine (%.0f %%)",
                             rows[i].name, rows[i].compute_pct);
  }
  for (size_t i = 0; i < steps; i++)
    if (!ran[i]) return say(arena, "no span was recorded for the step", table[i].name);
  return NULL;
}

/* ---- the spans ---- */

static int by_place(const void *pa, const void *pb) {
  const hone_span *a = *(const hone_span *const *)pa, *b = *(const hone_span *const *)pb;
  if (a->iteration != b->iteration) return a->iteration < b->iteration ? -1 : 1;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns ? -1 : 1; /* the outer one first */
  return a->id < b->id ? -1 : a->id > b->id;
}

static bool same_place(const hone_span *a, const hone_span *b) {
  return a->iteration == b->iteration && a->lane == b->lane;
}

/* Spans of a lane nest or follow each other; a step does not run inside itself. */
static const char *check_nesting(const hone_facts *facts, const hone_span **sorted, size_t n, hn_arena *arena,
                                 const hone_span **stack) {
  size_t depth = 0;
  for (size_t i = 0; i < n; i++) {
    const hone_span *s = sorted[i];
    if (s->kind == HONE_SPAN_RUN || s->start_ns == s->end_ns) continue;
    while (depth && (!same_place(stack[depth - 1], s) || stack[depth - 1]->end_ns <= s->start_ns)) depth--;
    if (depth) {
      const hone_span *outer = stack[depth - 1];
      if (s->end_ns > outer->end_ns) return say(arena, "spans cross on one lane at", name_of(facts, s));
      if (s->step >= 0 && s->step == outer->step)
        return say(arena, "a step is recorded inside itself:", name_of(facts, s));
    }
    stack[depth++] = s;
  }
  return NULL;
}

/* The work of an iteration lies inside its RUN span; only stages and transfers may stand around it. */
static const char *check_runs(const hone_facts *facts, const hone_span **sorted, size_t n, hn_arena *arena) {
  for (size_t i = 0, end; i < n; i = end) {
    const hone_span *run = NULL;
    for (end = i; end < n && sorted[end]->iteration == sorted[i]->iteration; end++)
      if (sorted[end]->kind == HONE_SPAN_RUN) run = sorted[end];
    for (size_t k = i; run && k < end; k++) {
      const hone_span *s = sorted[k];
      bool work = s->kind == HONE_SPAN_KERNEL || s->kind == HONE_SPAN_REFORMAT || s->kind == HONE_SPAN_HOST;
      if (work && (s->start_ns < run->start_ns || s->end_ns > run->end_ns))
        return say(arena, "a span lies outside its run:", name_of(facts, s));
    }
  }
  return NULL;
}

static const char *check_walls(const hone_profile *p, hn_arena *arena) {
  size_t n;
  const hone_wall *walls = hone_facts_walls(p->facts, &n);
  bool *seen = HN_NEW_ARRAY(arena, bool, n + 1);
  if (!seen) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (walls[i].iteration < 0) return say(arena, "a wall time belongs to no iteration", NULL);
    if ((size_t)walls[i].iteration >= n) continue;
    if (seen[walls[i].iteration])
      return hn_arena_printf(arena, "iteration %d has two wall times", walls[i].iteration);
    seen[walls[i].iteration] = true;
  }
  if (n && n != p->iterations && hone_facts_get_meta(p->facts)->dropped_spans == 0)
    return hn_arena_printf(arena, "%zu wall times stand beside %zu complete iterations", n, p->iterations);
  if (n && !p->closure.has_outer_clock) return say(arena, "some iterations have no wall time", NULL);
  return NULL;
}

hone_status hn_audit(const hone_profile *p, const hone_layer *rows, size_t row_count, hn_arena *arena,
                     const char **doubt, hone_error *error) {
  size_t n, measured = 0;
  const hone_span *spans = hone_facts_spans(p->facts, &n);
  const hone_span **sorted = hn_calloc(n, 2 * sizeof *sorted);
  if (!sorted) return hn_fail_memory(error, n * sizeof *sorted, "checking the profile");
  for (size_t i = 0; i < n; i++)
    if (spans[i].iteration >= 0) sorted[measured++] = &spans[i];
  if (measured) qsort(sorted, measured, sizeof *sorted, by_place);
  /* Layers that were timed apart from the runs need not add up to them: the profile's note says so. */
  size_t totals;
  hone_facts_step_stats(p->facts, &totals);
  *doubt = totals ? NULL : check_sums(p, rows, row_count, arena);
  if (!*doubt && !totals) *doubt = check_walls(p, arena);
  if (!*doubt) *doubt = check_runs(p->facts, sorted, measured, arena);
  if (!*doubt) *doubt = check_nesting(p->facts, sorted, measured, arena, sorted + n);
  if (!*doubt) *doubt = check_layers(p, rows, row_count, arena);
  hn_free(sorted);
  return HONE_OK;
}

bool hn_find_beaten(hone_profile *p, const hone_layer *rows, size_t count, hn_arena *arena) {
  size_t steps, roofs, found = 0;
  const hone_step_fact *step = hone_facts_steps(p->facts, &steps);
  hone_facts_roofs(p->facts, &roofs);
  hone_roof *beaten = HN_NEW_ARRAY(arena, hone_roof, roofs + 1);
  if (!beaten) return false;
  for (size_t i = 0; i < count; i++) {
    const hone_roof *roof = rows[i].step < 0 ? NULL : hn_roof_of_step(p->facts, &step[rows[i].step]);
    if (!roof || rows[i].executed_gflops <= roof->gflops) continue;
    size_t k = 0;
    while (k < found && strcmp(beaten[k].name, roof->name) != 0) k++;
    if (k == found) beaten[found++] = *roof;
    if (rows[i].executed_gflops > beaten[k].gflops) beaten[k].gflops = rows[i].executed_gflops;
  }
  p->beaten = beaten;
  p->beaten_count = found;
  return true;
}
