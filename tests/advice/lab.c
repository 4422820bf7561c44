#include "advice/lab.h"

#include <stdlib.h>
#include <string.h>

static void *copy(const void *from, size_t n, size_t size) {
  void *to = malloc((n + 1) * size);
  if (!to) abort();
  if (n) memcpy(to, from, n * size);
  return to;
}

void lab_open(lab *l, hone_facts *source, uint64_t seed) {
  *l = (lab){.source = source, .meta = *hone_facts_get_meta(source), .random = seed};
  const hone_step_fact *steps = hone_facts_steps(source, &l->step_count);
  l->steps = copy(steps, l->step_count, sizeof *steps);
  const hone_span *spans = hone_facts_spans(source, &l->span_count);
  l->spans = copy(spans, l->span_count, sizeof *spans);
  const hone_wall *walls = hone_facts_walls(source, &l->wall_count);
  l->walls = copy(walls, l->wall_count, sizeof *walls);
}

void lab_free(lab *l) {
  free(l->steps);
  free(l->spans);
  free(l->walls);
  hone_facts_destroy(l->source);
}

static uint64_t next(lab *l) {
  uint64_t z = l->random += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

size_t lab_pick(lab *l, size_t low, size_t high) {
  return low + (size_t)(next(l) % (high > low ? high - low : 1));
}

double lab_real(lab *l, double low, double high) {
  return low + (high - low) * (double)(next(l) >> 11) / 9007199254740992.0;
}

double lab_wall_ms(const lab *l) {
  double sum = 0;
  for (size_t i = 0; i < l->wall_count; i++) sum += (double)l->walls[i].wall_ns / 1e6;
  return l->wall_count ? sum / (double)l->wall_count : 0;
}

double lab_step_ms(const lab *l, size_t step) {
  double sum = 0;
  for (size_t i = 0; i < l->span_count; i++)
    if (l->spans[i].step == (int32_t)step && l->spans[i].iteration >= 0)
      sum += (double)(l->spans[i].end_ns - l->spans[i].start_ns) / 1e6;
  return l->wall_count ? sum / (double)l->wall_count : 0;
}

size_t lab_any_step(lab *l, double share) {
  size_t longest = 0;
  for (int tries = 0; tries < 200; tries++) {
    size_t i = lab_pick(l, 0, l->step_count);
    if (l->steps[i].is_reformat) continue;
    if (lab_step_ms(l, i) >= share * lab_wall_ms(l)) return i;
  }
  for (size_t i = 1; i < l->step_count; i++)
    if (lab_step_ms(l, i) > lab_step_ms(l, longest)) longest = i;
  return longest;
}

int32_t lab_new_step(lab *l, hone_step_fact step) {
  l->steps = realloc(l->steps, (l->step_count + 2) * sizeof *l->steps);
  if (!l->steps) abort();
  step.anchor_node = -1;
  l->steps[l->step_count] = step;
  return (int32_t)l->step_count++;
}

/* Everything from t0 on happens `ns` later. Containers that are open at t0 stay open for longer; those that
 * end at t0 do so if `inside`. */
static void shift(lab *l, int64_t t0, int64_t ns, bool inside) {
  for (size_t i = 0; i < l->span_count; i++) {
    hone_span *s = &l->spans[i];
    bool later = s->start_ns >= t0;
    if (s->end_ns > t0 || later || (inside && s->kind == HONE_SPAN_RUN && s->end_ns == t0)) s->end_ns += ns;
    if (later) s->start_ns += ns;
  }
}

static hone_span *run_of(lab *l, int32_t iteration) {
  for (size_t i = 0; i < l->span_count; i++)
    if (l->spans[i].kind == HONE_SPAN_RUN && l->spans[i].iteration == iteration) return &l->spans[i];
  return NULL;
}

static int64_t end_of(const lab *l, int32_t iteration, int32_t step) {
  int64_t end = -1;
  for (size_t i = 0; i < l->span_count; i++)
    if (l->spans[i].iteration == iteration && l->spans[i].step == step && l->spans[i].end_ns > end)
      end = l->spans[i].end_ns;
  return end;
}

void lab_insert(lab *l, lab_place place, int32_t after, double ms, hone_span_kind kind, hone_span like) {
  const int64_t ns = (int64_t)(ms * 1e6);
  for (size_t w = 0; w < l->wall_count; w++) {
    const int32_t it = l->walls[w].iteration;
    hone_span *run = run_of(l, it);
    if (!run) continue;
    int64_t t0 = place == LAB_BEFORE_RUN  ? run->start_ns
                 : place == LAB_AFTER_RUN ? run->end_ns
                                          : end_of(l, it, after);
    if (t0 < 0) continue;
    uint32_t parent = place == LAB_INSIDE ? run->id : 0;
    shift(l, t0, ns, place == LAB_INSIDE);
    if (place == LAB_INSIDE) l->walls[w].wall_ns += ns;
    if (kind == HONE_SPAN_KIND_COUNT) continue;
    l->spans = realloc(l->spans, (l->span_count + 2) * sizeof *l->spans);
    if (!l->spans) abort();
    hone_span s = like;
    s.id = (uint32_t)l->span_count + 1;
    s.parent = parent;
    s.start_ns = t0;
    s.end_ns = t0 + ns;
    s.kind = kind;
    s.iteration = it;
    l->spans[l->span_count++] = s;
  }
}

void lab_stretch(lab *l, int32_t step, double factor, int every) {
  for (size_t w = 0; w < l->wall_count; w++) {
    if ((int)w % every != every - 1) continue;
    for (size_t i = 0; i < l->span_count; i++) {
      hone_span *s = &l->spans[i];
      if (s->iteration != l->walls[w].iteration || s->step != step) continue;
      int64_t ns = (int64_t)((factor - 1) * (double)(s->end_ns - s->start_ns)), t0 = s->end_ns;
      shift(l, t0, ns, true);
      s->end_ns = t0 + ns;
      l->walls[w].wall_ns += ns;
    }
  }
}

void lab_counter(lab *l, const char *name, double value) {
  l->counters[l->counter_count++] = (hone_counter){name, "", -1, value};
}

hone_facts *lab_facts(const lab *l, hone_error *error) {
  hone_facts *f = hone_facts_create();
  size_t n;
  if (!f) return NULL;
  hone_facts_set_meta(f, &l->meta);
  hone_facts_set_memory(f, hone_facts_get_memory(l->source));
  const hone_roof *roofs = hone_facts_roofs(l->source, &n);
  for (size_t i = 0; i < n && !l->no_roofs; i++) hone_facts_add_roof(f, &roofs[i]);
  const hone_node_fact *nodes = hone_facts_nodes(l->source, &n);
  for (size_t i = 0; i < n; i++) hone_facts_add_node(f, &nodes[i]);
  const hone_near_miss *misses = hone_facts_near_misses(l->source, &n);
  for (size_t i = 0; i < n; i++) hone_facts_add_near_miss(f, &misses[i]);
  for (size_t i = 0; i < l->step_count; i++) hone_facts_add_step(f, &l->steps[i]);
  for (size_t i = 0; i < l->span_count; i++) hone_facts_add_span(f, &l->spans[i]);
  for (size_t i = 0; i < l->wall_count; i++)
    hone_facts_add_wall(f, l->walls[i].iteration, l->walls[i].wall_ns);
  const hone_counter *counters = hone_facts_counters(l->source, &n);
  for (size_t i = 0; i < n; i++) hone_facts_add_counter(f, &counters[i]);
  for (int i = 0; i < l->counter_count; i++) hone_facts_add_counter(f, &l->counters[i]);
  if (hone_facts_check(f, error) == HONE_OK) return f;
  hone_facts_destroy(f);
  return NULL;
}
