/* Which units go back to a wider type. Each step back is worth the noise that it takes away for the time that
 * it costs; how many are needed is found by halving, on the half of the samples that chooses, and then
 * checked on the half held out, step by step. */
#include "api/measure/watch.h"
#include "api/mixed/mixed.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

#define CONVERSIONS 0.1 /* of a layer's time, at least */

/* One unit, one rung up. */
typedef struct move {
  uint32_t unit;
  double worth;
  uint32_t order; /* of a unit's moves */
} move;

typedef struct climb {
  hn_mixing *m;
  HN_VEC(move) moves; /* best first */
} climb;

/* ---- choices */

/* The first n moves, and nothing else. */
static void take(climb *c, size_t n) {
  for (uint32_t u = 0; u < c->m->n_units; u++) c->m->unit[u].rung = 0;
  for (size_t i = 0; i < n; i++) c->m->unit[c->moves.ptr[i].unit].rung++;
}

static bool any_narrow(const hn_mixing *m) {
  for (uint32_t u = 0; u < m->n_units; u++)
    if (!m->unit[u].follows && m->unit[u].rung + 1 < m->unit[u].rungs) return true;
  return false;
}

static hone_status with_choice(hn_mixing *m,
                               hone_status (*measure)(hn_mixing *, const hn_mix_side *, void *, hone_error *),
                               void *arg, hone_error *error) {
  hone_model *model = NULL;
  hn_mix_side side = {0};
  hone_status status = hn_mix_build(m, &model, error);
  if (status == HONE_OK) status = hn_mix_open(m, model, false, &side, error);
  if (status == HONE_OK) status = measure(m, &side, arg, error);
  hn_mix_close(&side);
  hone_model_release(model);
  return status;
}

static hone_status chosen(hn_mixing *m, const hn_mix_side *side, void *arg, hone_error *error) {
  return hn_mix_score(m, side, HN_MIX_CHOOSES, arg, error);
}
static hone_status held_out(hn_mixing *m, const hn_mix_side *side, void *arg, hone_error *error) {
  return hn_mix_score(m, side, HN_MIX_HELD_OUT, arg, error);
}
static hone_status noise(hn_mixing *m, const hn_mix_side *side, void *arg, hone_error *error) {
  return hn_mix_noise(m, side, arg, error);
}

/* ---- what each unit costs */

/* A unit that follows is narrow beside others only: what all lose less without it. */
static hone_status follower_noise(hn_mixing *m, hn_mix_unit *unit, double all, hone_error *error) {
  double without = 0;
  for (uint32_t u = 0; u < m->n_units; u++) m->unit[u].rung = 0;
  unit->rung = unit->rungs - 1;
  const hone_status status = with_choice(m, noise, &without, error);
  unit->noise[HONE_MIXED_INT8] = fmax(all - without, 0);
  for (uint32_t u = 0; u < m->n_units; u++) m->unit[u].rung = m->unit[u].rungs - 1;
  return status;
}

/* Alone, all others wide. */
static hone_status own_noise(hn_mixing *m, hn_mix_unit *unit, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t r = 0; r + 1 < unit->rungs && status == HONE_OK; r++) {
    unit->rung = r;
    status = with_choice(m, noise, &unit->noise[unit->ladder[r]], error);
  }
  unit->rung = unit->rungs - 1;
  return status;
}

static hone_status measure_noise(hn_mixing *m, hone_error *error) {
  double all = 0;
  hone_status status = with_choice(m, noise, &all, error);
  if (status != HONE_OK) return status;
  uint32_t *rung = hn_malloc((m->n_units + 1) * sizeof *rung);
  if (!rung) return hn_fail_memory(error, m->n_units, "units");
  for (uint32_t u = 0; u < m->n_units; u++) {
    rung[u] = m->unit[u].rung;
    m->unit[u].rung = m->unit[u].rungs - 1;
  }
  for (uint32_t u = 0; u < m->n_units && status == HONE_OK && !hn_mix_late(m); u++) {
    hn_mix_unit *unit = &m->unit[u];
    status = unit->follows ? follower_noise(m, unit, all, error) : own_noise(m, unit, error);
    if (status == HONE_OK && !hn_mix_tell(m, "error of layers", u + 1, m->n_units))
      status = hn_watch_stopped(error);
  }
  for (uint32_t u = 0; u < m->n_units; u++) m->unit[u].rung = rung[u];
  hn_free(rung);
  return status;
}

/* Without a measurement: the worst. */
static double noise_at(const hn_mix_unit *u, uint32_t rung) {
  const hone_mixed_type t = u->ladder[rung];
  return t == HONE_MIXED_F32 ? 0 : isnan(u->noise[t]) ? (double)INFINITY : u->noise[t];
}

/* A wide layer also costs the conversions around it. */
static double worth_of(const hn_mix_unit *u, uint32_t rung) {
  const double wide = u->median[u->ladder[rung + 1]], narrow = u->median[u->ladder[rung]],
               costs = fmax(wide - narrow, CONVERSIONS * wide), now = noise_at(u, rung),
               gain = isinf(now) ? now : now - noise_at(u, rung + 1);
  return costs > 0 ? gain / costs : gain; /* not timed: the noise alone */
}

static int by_worth(const void *a, const void *b) {
  const move *x = a, *y = b;
  if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
  if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static hone_status rank(climb *c, hone_error *error) {
  hone_status status = measure_noise(c->m, error);
  if (status != HONE_OK) return status;
  for (uint32_t u = 0; u < c->m->n_units; u++) {
    double worth = INFINITY;
    for (uint32_t r = 0; r + 1 < c->m->unit[u].rungs; r++) {
      worth = fmin(worth, worth_of(&c->m->unit[u], r)); /* a second step never comes before the first */
      if (!hn_vec_push(&c->moves, (move){u, worth, r})) return hn_fail_memory(error, sizeof(move), "moves");
    }
  }
  if (c->moves.len) qsort(c->moves.ptr, c->moves.len, sizeof *c->moves.ptr, by_worth);
  return HONE_OK;
}

/* ---- the search */

/* The fewest moves that keep the budget on the half that chooses, by halving; all of them keep it. */
static hone_status choose(climb *c, size_t *n, hone_error *error) {
  hn_mixing *m = c->m;
  hone_mixed_score *score = &m->report->chosen;
  *n = 0;
  hone_status status = with_choice(m, chosen, score, error);
  m->report->all_narrow = score->drop;
  if (status != HONE_OK || score->drop <= m->o->max_drop) return status;
  size_t low = 0, high = c->moves.len; /* too few, enough */
  while (status == HONE_OK && high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    take(c, middle);
    status = with_choice(m, chosen, score, error);
    if (score->drop <= m->o->max_drop)
      high = middle;
    else
      low = middle;
  }
  *n = high;
  take(c, high);
  if (status != HONE_OK || !any_narrow(m)) return status;
  return with_choice(m, chosen, score, error); /* the last one tried may have been another */
}

/* Whether n moves keep the budget on the half held out, and more of them than `first` still on the half that
 * chooses: one layer's error may have hidden another's. Nothing narrow does. */
static hone_status keeps(climb *c, size_t n, size_t first, bool *good, hone_error *error) {
  hone_mixed_report *report = c->m->report;
  const double most = c->m->o->max_drop;
  hone_mixed_score held = {0}, chose = {0};
  take(c, n);
  *good = !any_narrow(c->m);
  if (*good) return HONE_OK;
  hone_status status = with_choice(c->m, held_out, &held, error);
  *good = status == HONE_OK && held.drop <= most;
  if (*good && n > first) {
    status = with_choice(c->m, chosen, &chose, error);
    *good = status == HONE_OK && chose.drop <= most;
    if (*good) report->chosen = chose;
  }
  if (*good || !report->held_out.samples) report->held_out = held;
  return status;
}

/* More moves, twice as many each time, until both halves agree; then the fewest of the last ones.
 * Which moves come first is never asked of that half. */
static hone_status check(climb *c, size_t *n, bool *met, hone_error *error) {
  hn_mixing *m = c->m;
  const size_t first = *n, all = c->moves.len;
  size_t low = first, high = first;
  bool good = false;
  hone_status status = keeps(c, first, first, &good, error);
  for (size_t more = 1; status == HONE_OK && !good; more *= 2) {
    low = high;
    high = first + more < all ? first + more : all;
    status = keeps(c, high, first, &good, error);
  }
  while (status == HONE_OK && high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    status = keeps(c, middle, first, &good, error);
    if (good)
      high = middle;
    else
      low = middle;
  }
  for (size_t i = first; i < high; i++) m->unit[c->moves.ptr[i].unit].held_back = true;
  m->report->held_back = (uint32_t)(high - first);
  *n = high;
  take(c, high);
  *met = any_narrow(m);
  return status;
}

hone_status hn_mix_search(hn_mixing *m, bool *met, hone_error *error) {
  climb c = {.m = m};
  size_t n = 0;
  *met = false;
  hone_status status = rank(&c, error);
  if (status == HONE_OK) status = choose(&c, &n, error);
  if (status == HONE_OK) status = check(&c, &n, met, error);
  m->report->returned = (uint32_t)n;
  hn_vec_free(&c.moves);
  return status;
}
