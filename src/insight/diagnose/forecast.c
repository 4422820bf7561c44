/* A step of the preview that was timed on its own, on this machine, takes that. What was not (it is in the
 * measured plan, too, or the time for it was up) goes by its cost model. A cost model is good at comparing
 * and poor at absolute times: it knows nothing of this processor, of caches that are warm or of a compiler's
 * luck. So its word is scaled by what the same tactic really took, over what the model had said there:
 *
 *   same step and tactic:      t = measured(step) * model(preview) / model(measured plan)
 *   the same, but larger:      t = measured(step) + what the model adds * slowness
 *   same tactic elsewhere:     t = model(preview) * sum of times(tactic) / sum model(tactic); of the
 * preview's timed steps, else of the measured plan a tactic never measured:   t = model(preview) * slowness
 *   no model at all:           t = measured(step), or nothing when the step was not measured
 *
 * slowness: sum measured / sum model of all steps, or of convolutions and products alone; the lesser, at
 * least 1.
 *
 * Steps are the same when they have the same anchor; conversions of layout have none and are known by the
 * tensor and the direction: to and fro are other walks through memory, also where their models agree. Time
 * between steps goes with their number. */
#include "insight/diagnose/forecast.h"

#include "base/map.h"
#include "insight/diagnose/rule.h"

#include <math.h>
#include <string.h>

/* A step that is timed on its own starts cold, between two time stamps, and a run begins and ends with more
 * of them: some microseconds that have nothing to do with what is computed. */
#define STEP_UNSURE_MS 0.001
enum { STEPS_UNSURE = 5 }; /* as many count at least */

/* One tactic in the measured plan, or all of them. */
typedef struct calibration {
  double measured, model;
} calibration;

typedef struct forecaster {
  const hone_profile *p;
  const hone_step_fact *steps;
  size_t step_count, node_count;
  hn_map by_tactic;
  calibration all, products;    /* of all steps; of those with convolutions and products */
  const hone_layer **of_anchor; /* by node: the layer whose anchor it is */
  hn_map by_name;               /* layers without an anchor, by what `named` makes of them */
  hn_arena *arena;
} forecaster;

/* Share of a step's time, by its model, that fusion may add without its being another step (rehearse.c). */
#define RIDES_ALONG 0.05

/* A ratio of two cost models far from 1 says that they do not speak of the same work. */
static double bounded(double ratio) { return ratio < 0.1 ? 0.1 : ratio > 10 ? 10 : ratio; }

/* "what\ndoes": a tensor's or a tactic's name and a direction. NULL when there is no name, or no memory. */
static const char *named(forecaster *f, const char *what, const char *does) {
  if (!what || !*what) return NULL;
  const size_t n = strlen(what), m = does ? strlen(does) : 0;
  char *s = HN_NEW_ARRAY(f->arena, char, n + m + 2);
  if (!s) return NULL;
  memcpy(s, what, n);
  s[n] = '\n';
  if (m) memcpy(s + n + 1, does, m);
  s[n + 1 + m] = 0;
  return s;
}

static bool calibrate(forecaster *f, const char *tactic, double measured, double model) {
  calibration *c = tactic ? hn_map_get(&f->by_tactic, tactic) : NULL;
  if (tactic && !c) {
    c = HN_NEW(f->arena, calibration);
    if (!c || !hn_map_set(&f->by_tactic, tactic, c)) return false;
  }
  if (c) c->measured += measured, c->model += model;
  return tactic != NULL;
}

static bool add_layer(forecaster *f, const hone_layer *l) {
  if (l->step < 0 || (size_t)l->step >= f->step_count) return true;
  const hone_step_fact *s = &f->steps[l->step];
  if (s->anchor_node < 0) {
    const char *name = named(f, s->name, s->epilogue);
    if (s->name && *s->name && (!name || !hn_map_set(&f->by_name, name, (void *)l))) return false;
  } else if ((size_t)s->anchor_node < f->node_count && !s->is_reformat && !f->of_anchor[s->anchor_node])
    f->of_anchor[s->anchor_node] = l;
  if (!s->tactic || s->predicted_ms <= 0) return true;
  if (!calibrate(f, s->tactic, hn_typical_ms(l), s->predicted_ms)) return false;
  const char *directed = s->is_reformat ? named(f, s->tactic, s->epilogue) : NULL;
  if (s->is_reformat && !calibrate(f, directed, hn_typical_ms(l), s->predicted_ms)) return false;
  f->all.measured += hn_typical_ms(l);
  f->all.model += s->predicted_ms;
  if (hn_is_matrix(l)) f->products.measured += hn_typical_ms(l), f->products.model += s->predicted_ms;
  return true;
}

static double over(const calibration *c) { return c->model > 0 ? c->measured / c->model : 1; }

/* How much slower than its models this machine is: a busy neighbour slows every kernel, those of the next
 * plan too. What only some kernels take longer is no such thing: conversions of layout are mostly waiting for
 * other cores' caches, which says nothing about arithmetic. And it makes none faster: a sum below 1 says that
 * some model of the measured plan is too high. */
static double slowness(const forecaster *f) {
  double least = over(&f->all);
  if (f->products.model > 0 && over(&f->products) < least) least = over(&f->products);
  return least > 1 ? bounded(least) : 1;
}

static const hone_layer *same_step(forecaster *f, const hone_preview_step *s) {
  if (s->anchor_node < 0) {
    const char *name = named(f, s->name, s->epilogue);
    return name ? hn_map_get(&f->by_name, name) : NULL;
  }
  return (size_t)s->anchor_node < f->node_count ? f->of_anchor[s->anchor_node] : NULL;
}

/* What fusion adds to a step is other work than the step had: how far that one is from its model says nothing
 * about it. What a step gets rid of was part of what was measured. */
static double same_tactic(const forecaster *f, double measured, double model, double preview) {
  if (preview > model) return measured + (preview - model) * slowness(f);
  return measured * bounded(preview / model);
}

/* How the step's tactic did elsewhere; of conversions, those in the same direction. */
static const calibration *elsewhere(forecaster *f, const hone_preview_step *s) {
  const char *directed = s->anchor_node < 0 ? named(f, s->tactic, s->epilogue) : NULL;
  const calibration *c = directed ? hn_map_get(&f->by_tactic, directed) : NULL;
  if (!c && s->tactic) c = hn_map_get(&f->by_tactic, s->tactic);
  return c && c->measured > 0 ? c : NULL;
}

/* *seen: whether the time is a measurement of this very step. */
static double one(forecaster *f, const hone_preview_step *s, bool *seen) {
  *seen = s->timed_ms > 0;
  if (*seen) return s->timed_ms;
  const hone_layer *l = same_step(f, s);
  if (s->predicted_ms <= 0) return l ? hn_typical_ms(l) : 0;
  const hone_step_fact *was = l ? &f->steps[l->step] : NULL;
  if (was && was->predicted_ms > 0 && was->tactic && s->tactic && strcmp(was->tactic, s->tactic) == 0) {
    *seen = s->predicted_ms <= (1 + RIDES_ALONG) * was->predicted_ms;
    return same_tactic(f, hn_typical_ms(l), was->predicted_ms, s->predicted_ms);
  }
  if (s->scaled_ms > 0) return s->scaled_ms;
  const calibration *c = elsewhere(f, s);
  return s->predicted_ms * (c ? bounded(c->measured / c->model) : slowness(f));
}

/* *seen_ms, unless NULL: how much of it was measured of the very steps. */
static const double *forecast_steps(const hone_profile *p, hn_arena *arena, double *seen_ms) {
  forecaster f = {.p = p, .arena = arena};
  size_t n;
  const hone_preview_step *previews = hone_facts_preview_steps(p->facts, &n);
  f.steps = hone_facts_steps(p->facts, &f.step_count);
  hone_facts_nodes(p->facts, &f.node_count);
  double *ms = n ? HN_NEW_ARRAY(arena, double, n) : NULL;
  f.of_anchor = HN_NEW_ARRAY(arena, const hone_layer *, f.node_count + 1);
  bool fine = ms && f.of_anchor;
  for (size_t i = 0; i < p->layer_count && fine; i++) fine = add_layer(&f, &p->layers[i]);
  for (size_t i = 0; i < n && fine; i++) {
    bool seen;
    ms[i] = one(&f, &previews[i], &seen);
    if (seen_ms && seen) *seen_ms += ms[i];
  }
  hn_map_free(&f.by_tactic);
  hn_map_free(&f.by_name);
  return fine ? ms : NULL;
}

const double *hn_forecast_steps(const hone_profile *p, hn_arena *arena) {
  return forecast_steps(p, arena, NULL);
}

bool hone_forecast_make(const hone_profile *p, hone_forecast *out) {
  if (!p || !out) return false;
  const uint64_t lost = hn_mem_lost();
  *out = (hone_forecast){0};
  hn_arena arena = {0};
  double seen = 0;
  const double *ms = p->filtered ? NULL : forecast_steps(p, &arena, &seen);
  double wall = hn_typical_wall_ms(p), layers = 0, after = 0;
  size_t n;
  const hone_preview_step *previews = hone_facts_preview_steps(p->facts, &n);
  for (size_t i = 0; ms && i < n; i++) after += ms[i];
  for (size_t i = 0; i < p->layer_count; i++) layers += hn_typical_ms(&p->layers[i]);
  bool known = ms && wall > 0 && p->layer_count > 0 && after > 0;
  if (known) {
    double between = wall > layers ? wall - layers : 0;
    out->level = previews[0].level;
    out->before_ms = wall;
    out->after_ms = after + between * (double)n / (double)p->layer_count;
    out->saved_pct = 100 * (1 - out->after_ms / wall);
    out->gain_pct = 100 * (wall / out->after_ms - 1);
    out->seen_pct = 100 * seen / after;
    const double unsure = STEP_UNSURE_MS * (double)(n > STEPS_UNSURE ? n : STEPS_UNSURE);
    if (fabs(out->after_ms - wall) < unsure)
      out->unsure_ms = unsure, out->after_ms = wall, out->saved_pct = out->gain_pct = 0;
  }
  hn_arena_free(&arena);
  if (hn_mem_lost() == lost) return known;
  *out = (hone_forecast){.gain_pct = NAN};
  return false;
}
