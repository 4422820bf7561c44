#include "insight/profile/bound.h"

#include "base/names.h"

#include <string.h>

HN_NAME_FUNCTION(hone_limit_name, hone_limit, HONE_LIMITS)

static bool is_memory(const hone_roof *roof) { return roof->gbs > 0; }

/* Of two roofs for the same thing, the one measured with the thread count nearest to the run's (at most that,
 * if any). */
static bool better_threads(const hone_roof *a, const hone_roof *b, double threads) {
  if (!b) return true;
  bool a_fits = a->threads <= threads, b_fits = b->threads <= threads;
  if (a_fits != b_fits) return a_fits;
  return a_fits ? a->threads > b->threads : a->threads < b->threads;
}

static double run_threads(const hone_facts *facts) {
  double t = hone_facts_get_meta(facts)->threads;
  return t > 0 ? t : 1;
}

/* A roof is named after the arithmetic, a step after its elements: signed or not, their products run on the
 * same units. */
static const char *arithmetic_of(const char *dtype) {
  if (!dtype) return "f32";
  return strcmp(dtype, "u8") == 0 || strcmp(dtype, "i8") == 0 ? "int8" : dtype;
}

const hone_roof *hn_roof_compute(const hone_facts *facts, const char *dtype) {
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(facts, &n), *best = NULL;
  const char *name = arithmetic_of(dtype), *vectors = "int8 vectors";
  for (size_t i = 0; i < n; i++)
    if (!is_memory(&roofs[i]) && roofs[i].gflops > 0 && strcmp(roofs[i].name, name) == 0 &&
        better_threads(&roofs[i], best, run_threads(facts)))
      best = &roofs[i];
  /* Without tiles int8 is of vectors, and has no roof of its own. */
  return best || strcmp(name, vectors) != 0 ? best : hn_roof_compute(facts, "int8");
}

const hone_roof *hn_roof_of_step(const hone_facts *facts, const hone_step_fact *step) {
  return hn_roof_compute(facts, !step ? NULL : step->arithmetic ? step->arithmetic : step->dtype);
}

double hn_executed_flops(const hone_step_fact *step) {
  return !step ? 0 : (double)(step->executed_flops ? step->executed_flops : step->flops);
}

static const hone_roof *memory_named(const hone_facts *facts, const char *name) {
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(facts, &n), *best = NULL;
  for (size_t i = 0; i < n; i++)
    if (is_memory(&roofs[i]) && strcmp(roofs[i].name, name) == 0 &&
        better_threads(&roofs[i], best, run_threads(facts)))
      best = &roofs[i];
  return best;
}

const hone_roof *hn_roof_dram(const hone_facts *facts) {
  const hone_roof *dram = memory_named(facts, "DRAM");
  if (dram) return dram;
  /* A foreign machine may call it otherwise (HBM): take the slowest level. */
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(facts, &n), *slowest = NULL;
  for (size_t i = 0; i < n; i++)
    if (is_memory(&roofs[i]) && (!slowest || roofs[i].gbs < slowest->gbs)) slowest = &roofs[i];
  return slowest;
}

const hone_roof *hn_roof_memory(const hone_facts *facts, const hone_step_fact *step, double bytes) {
  /* The innermost level that holds what the step touches. A step's weights come back only once an iteration:
   * when all weights together overflow a level they arrive from further out, however small this step is. */
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(facts, &n), *best = NULL;
  double all_weights = (double)hone_facts_get_memory(facts)->weights;
  bool mostly_weights = step && step->weight_bytes > bytes / 2;
  for (size_t i = 0; i < n; i++) {
    const hone_roof *r = &roofs[i];
    if (!is_memory(r) || !r->capacity_bytes || memory_named(facts, r->name) != r) continue;
    double room = (double)r->capacity_bytes;
    if (bytes > room || (mostly_weights && all_weights > room)) continue;
    if (!best || r->capacity_bytes < best->capacity_bytes) best = r;
  }
  return best ? best : hn_roof_dram(facts);
}

static const hone_step_fact *step_of(const hone_facts *facts, const hone_layer *l) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(facts, &n);
  return l->step >= 0 && (size_t)l->step < n ? &steps[l->step] : NULL;
}

double hn_roof_ms(const hone_facts *facts, const hone_layer *l, double percent, double start_us) {
  const hone_step_fact *step = step_of(facts, l);
  const hone_roof *compute = hn_roof_of_step(facts, step);
  const hone_roof *memory = hn_roof_memory(facts, step, l->calls > 0 ? l->bytes / l->calls : l->bytes);
  double ms = 0, typical = hn_typical_ms(l);
  if (!compute && l->executed_flops > 0) return typical; /* half a roof is none */
  if (compute && l->executed_flops > 0) ms = l->executed_flops / compute->gflops / 1e6;
  if (memory && l->bytes > 0 && l->bytes / memory->gbs / 1e6 > ms) ms = l->bytes / memory->gbs / 1e6;
  if (ms <= 0) return typical;
  ms = ms * 100 / percent + l->calls * start_us / 1e3;
  return ms < typical ? ms : typical;
}

bool hn_has_roof(const hone_facts *facts, const hone_layer *l) {
  return hn_roof_dram(facts) && (l->executed_flops <= 0 || hn_roof_of_step(facts, step_of(facts, l)));
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/* SPEC 3: above 60 % of a roof names it; both below 40 % means latency; in between the larger, with low
 * confidence. */
void hn_bound_classify(hone_layer *l, double reached, double far) {
  double top = l->compute_pct > l->memory_pct ? l->compute_pct : l->memory_pct;
  /* With arithmetic whose roof nobody measured, little use of the memory says nothing. */
  if (!l->by_counters && l->compute_pct <= 0 && l->flops > 0 && top <= reached) top = 0;
  if (!l->by_counters && top <= 0) {
    l->bound = l->ridge;
    l->bound_confidence = l->ridge == HONE_LIMIT_UNKNOWN ? 0 : 0.3;
    return;
  }
  l->bound = l->compute_pct >= l->memory_pct ? HONE_LIMIT_COMPUTE : HONE_LIMIT_MEMORY;
  if (top > reached)
    l->bound_confidence = l->bound == l->ridge ? 0.95 : 0.8;
  else if (top < far) {
    l->bound = HONE_LIMIT_LATENCY;
    l->bound_confidence = 0.7;
  } else
    l->bound_confidence = 0.4;
}

double hn_typical_ms(const hone_layer *l) { return l->stats.p50 > 0 ? l->stats.p50 : l->time_ms; }

double hn_typical_wall_ms(const hone_profile *p) {
  double ms = p->closure.typical_gaps_ms + (p->closure.residual_ms > 0 ? p->closure.residual_ms : 0);
  for (size_t i = 0; i < p->layer_count; i++) ms += hn_typical_ms(&p->layers[i]);
  return ms;
}

bool hn_profile_is_window(const hone_profile *p, double idle_pct) {
  const hone_stages *s = &p->stages;
  const char *tool = hone_facts_get_meta(p->facts)->tool;
  return tool && strcmp(tool, "hone") != 0 && p->iterations < 2 && s->total_ms > 0 &&
         100 * (s->total_ms - s->infer_ms) / s->total_ms > idle_pct;
}

double hn_typical_work_ms(const hone_profile *p) {
  double ms = 0;
  for (size_t i = 0; i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[i];
    if (l->kind == HONE_SPAN_KERNEL || l->kind == HONE_SPAN_REFORMAT) ms += hn_typical_ms(l);
  }
  return ms;
}

static bool is_of_step(const hone_counter *c, size_t steps) {
  return c->name && c->step >= 0 && (size_t)c->step < steps;
}

hn_utilisation *hn_utilisation_of_steps(const hone_facts *facts, hn_arena *arena) {
  size_t steps, n;
  hone_facts_steps(facts, &steps);
  const hone_counter *c = hone_facts_counters(facts, &n);
  hn_utilisation *all = HN_NEW_ARRAY(arena, hn_utilisation, steps + 1);
  hone_counter *sorted = HN_NEW_ARRAY(arena, hone_counter, n + 1);
  if (!all || !sorted) return NULL;
  for (size_t i = 0; i < n; i++)
    if (is_of_step(&c[i], steps)) all[c[i].step].count++;
  for (size_t i = 0; i < steps; i++) {
    const size_t count = all[i].count;
    all[i] = (hn_utilisation){-1, -1, sorted, 0};
    sorted += count;
  }
  for (size_t i = 0; i < n; i++) {
    if (!is_of_step(&c[i], steps)) continue;
    hn_utilisation *u = &all[c[i].step];
    u->counters[u->count++] = c[i];
    /* Of several the first counts. */
    if (u->compute_pct < 0 && strcmp(c[i].name, "compute_pct_of_peak") == 0) u->compute_pct = c[i].value;
    if (u->memory_pct < 0 && strcmp(c[i].name, "memory_pct_of_peak") == 0) u->memory_pct = c[i].value;
  }
  return all;
}

/* Measured utilisation is better than what FLOPs and bytes over time suggest. */
static void take_counters(const hn_utilisation *measured, hone_layer *l) {
  l->counters = measured->counters;
  l->counter_count = measured->count;
  l->by_counters = measured->compute_pct >= 0 && measured->memory_pct >= 0;
  if (measured->compute_pct >= 0) l->compute_pct = measured->compute_pct;
  if (measured->memory_pct >= 0) {
    l->memory_pct = measured->memory_pct;
    l->memory_level = NULL; /* whichever is busiest */
  }
  if (l->roof_pct <= 0) l->roof_pct = l->compute_pct > l->memory_pct ? l->compute_pct : l->memory_pct;
}

void hn_bound_layer(const hone_facts *facts, const hn_utilisation *measured, hone_layer *l) {
  const hone_step_fact *step = step_of(facts, l);
  if (step && step->is_launch) return; /* how fast it was launched says nothing of how fast it ran */
  double seconds = hn_typical_ms(l) / 1e3;
  if (seconds > 0) {
    l->gflops = l->flops / seconds / 1e9;
    l->executed_gflops = l->executed_flops / seconds / 1e9;
    l->gbs = l->bytes / seconds / 1e9;
  }
  if (l->bytes > 0) l->intensity = l->executed_flops / l->bytes;
  const hone_roof *compute = hn_roof_of_step(facts, step);
  double bytes_per_call = l->calls > 0 ? l->bytes / l->calls : l->bytes;
  const hone_roof *memory = hn_roof_memory(facts, step, bytes_per_call);
  if (compute) l->compute_pct = percent(l->executed_gflops, compute->gflops);
  if (memory && l->bytes > 0) {
    l->memory_pct = percent(l->gbs, memory->gbs);
    l->memory_level = memory->name;
  }
  l->roof_pct = l->compute_pct > l->memory_pct ? l->compute_pct : l->memory_pct;
  if (step) take_counters(&measured[l->step], l);
  if (compute && memory && l->bytes > 0)
    l->ridge = l->intensity > compute->gflops / memory->gbs ? HONE_LIMIT_COMPUTE : HONE_LIMIT_MEMORY;
  hn_bound_classify(l, HN_ROOF_REACHED, HN_ROOF_FAR);
}
