/* Hardware counters of the processor, step by step: the narrow second pass of a profile. Reading them between
 * steps costs microseconds, so these runs are not the ones that are timed. */
#include "api/api.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"

#include <math.h>
#include <stdlib.h>

enum { CACHE_LINE = 64 };

/* What one step's executions add up to; n: of the executions in which the counter was read. */
typedef struct step_count {
  bool chosen;
  double runs, seconds;
#define X(name) double name, n_##name;
  HONE_COUNTS(X)
#undef X
} step_count;

struct hn_step_counts {
  const hone_counting *counting;
  step_count *step;
  uint32_t n;
  hone_counts before;
  uint64_t before_ns;
};

void hn_step_counts_edge(void *arg, uint32_t step, bool after) {
  hn_step_counts *c = arg;
  if (step >= c->n || !c->step[step].chosen) return;
  if (!after) {
    hone_counting_read(c->counting, &c->before);
    c->before_ns = hn_now_ns();
    return;
  }
  const uint64_t now_ns = hn_now_ns();
  hone_counts now;
  hone_counting_read(c->counting, &now);
  step_count *s = &c->step[step];
  s->runs++;
  s->seconds += (double)(now_ns - c->before_ns) * 1e-9;
#define X(name)                                                                                              \
  if (isfinite(now.name) && isfinite(c->before.name)) s->name += now.name - c->before.name, s->n_##name++;
  HONE_COUNTS(X)
#undef X
}

hn_step_counts *hn_step_counts_open(const hone_counting *counting, uint32_t n, const uint32_t *steps,
                                    uint32_t n_steps) {
  hn_step_counts *c = hn_calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (hn_step_counts){.counting = counting, .step = hn_calloc((size_t)n + 1, sizeof *c->step), .n = n};
  if (!c->step) {
    hn_free(c);
    return NULL;
  }
  for (uint32_t i = 0; i < (steps ? n_steps : n); i++)
    if (!steps || steps[i] < n) c->step[steps ? steps[i] : i].chosen = true;
  return c;
}

void hn_step_counts_close(hn_step_counts *c) {
  if (c) hn_free(c->step);
  hn_free(c);
}

static void add(hone_facts *facts, const char *name, const char *unit, uint32_t step, double value) {
  if (isfinite(value)) hone_facts_add_counter(facts, &(hone_counter){name, unit, (int32_t)step, value});
}

/* An execution on average; NaN: not read. */
static double mean(double sum, double n) { return n > 0 ? sum / n : (double)NAN; }

static void add_step(hone_facts *facts, uint32_t k, const step_count *s) {
  hone_counts one;
#define X(name) one.name = mean(s->name, s->n_##name);
  HONE_COUNTS(X)
#undef X
#define X(name) add(facts, #name, "an execution", k, one.name);
  HONE_COUNTS(X)
#undef X
  if (one.cycles > 0) add(facts, "instructions_per_cycle", "", k, one.instructions / one.cycles);
  if (one.llc_references > 0) add(facts, "llc_miss_pct", "%", k, 100 * one.llc_misses / one.llc_references);
  if (one.instructions > 0)
    add(facts, "branch_misses_per_1000", "", k, 1000 * one.branch_misses / one.instructions);
  /* What misses the last cache comes from memory, a line at a time; what is written back or fetched ahead is
   * not seen. */
  if (s->seconds > 0)
    add(facts, "dram_gbs_estimate", "GB/s", k, one.llc_misses * CACHE_LINE * s->runs / s->seconds / 1e9);
}

void hn_step_counts_write(const hn_step_counts *c, hone_facts *facts) {
  bool ran = false;
  for (uint32_t k = 0; k < c->n; k++) ran = ran || (c->step[k].chosen && c->step[k].runs > 0);
  for (uint32_t k = 0; k < c->n; k++)
    if (c->step[k].chosen && c->step[k].runs > 0) add_step(facts, k, &c->step[k]);
#define X(name)                                                                                              \
  {                                                                                                          \
    double read = 0;                                                                                         \
    for (uint32_t k = 0; k < c->n; k++) read += c->step[k].n_##name;                                         \
    if (ran && read == 0)                                                                                    \
      hone_facts_add_unmeasured(facts, #name, "the processor, or the virtual machine, does not count it");   \
  }
  HONE_COUNTS(X)
#undef X
}
