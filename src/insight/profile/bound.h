/* What limits a layer: its speed against the machine's measured roofs. */
#ifndef HN_INSIGHT_BOUND_H
#define HN_INSIGHT_BOUND_H

#include "base/arena.h"

#include <hone/insight.h>

/* The compute roof for a dtype (NULL: f32) at the run's thread count, or the nearest count below; NULL: not
 * measured. */
const hone_roof *hn_roof_compute(const hone_facts *facts, const char *dtype);
/* The compute roof of what a step is computed with (NULL: f32). */
const hone_roof *hn_roof_of_step(const hone_facts *facts, const hone_step_fact *step);
/* FLOPs that one execution really takes; 0 for NULL. */
double hn_executed_flops(const hone_step_fact *step);
/* The bandwidth roof that applies to a step which touches `bytes` an execution; NULL: not measured. */
const hone_roof *hn_roof_memory(const hone_facts *facts, const hone_step_fact *step, double bytes);
/* The slowest, outermost memory level. */
const hone_roof *hn_roof_dram(const hone_facts *facts);

/* The layer's time in a typical run: the median over iterations, which an interruption by another process
 * does not move; the mean for one that runs in the minority of iterations. */
double hn_typical_ms(const hone_layer *layer);

/* Wall of a typical run: the layers' typical times plus gaps and residual. On a quiet machine it is the
 * median wall; on a busy one every run is interrupted somewhere, so even the median wall is longer than any
 * run would be alone. */
double hn_typical_wall_ms(const hone_profile *profile);

/* Milliseconds that the layer would take at `percent` of its roofline, with start_us for every execution; its
 * typical time when no roof is known or it is faster already. */
double hn_roof_ms(const hone_facts *facts, const hone_layer *layer, double percent, double start_us);
/* Roofs were measured for what this layer does. */
bool hn_has_roof(const hone_facts *facts, const hone_layer *layer);

/* The record is a window of a program's life rather than runs of a network: one stretch of time by another
 * tool, of which more than idle_pct percent is no computation. */
bool hn_profile_is_window(const hone_profile *profile, double idle_pct);
#define HN_WINDOW_IDLE 60.0
/* What operators compute in a typical run: no copies, no waiting, no stages. */
double hn_typical_work_ms(const hone_profile *profile);

/* What hardware counters say of each step; the shares in percent, negative: nothing. Looked up once, as there
 * may be as many counters as steps. NULL when out of memory. */
typedef struct hn_utilisation {
  double compute_pct, memory_pct;
  hone_counter *counters;
  size_t count;
} hn_utilisation;
hn_utilisation *hn_utilisation_of_steps(const hone_facts *facts, hn_arena *arena);

/* Fills gflops, gbs, intensity, compute_pct, memory_pct, roof_pct, memory_level, bound, ridge,
 * bound_confidence from stats, time_ms, calls, flops, bytes and step. */
void hn_bound_layer(const hone_facts *facts, const hn_utilisation *measured, hone_layer *layer);

/* The two limits of the kernel classes, in percent of a roof (SPEC 3): above the first a roof is reached,
 * with both below the second nothing but latency limits a kernel. Thresholds roof_reached and roof_far
 * override them for findings. */
#define HN_ROOF_REACHED 60.0
#define HN_ROOF_FAR 40.0

/* bound and bound_confidence anew, by other limits. */
void hn_bound_classify(hone_layer *layer, double reached, double far);

#endif
