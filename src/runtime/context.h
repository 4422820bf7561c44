/* One run's memory and state. */
#ifndef HN_RUNTIME_CONTEXT_H
#define HN_RUNTIME_CONTEXT_H

#include "model/ir/eval.h"
#include "optimize/step/step.h"
#include "runtime/lent.h"

#include <hone/facts.h>

typedef struct hn_context hn_context;

typedef struct hn_run_limits {
  double max_seconds;
  uint64_t max_bytes, max_nodes;
} hn_run_limits;

hone_status hn_context_create(const hn_plan *plan, hn_context **out, hone_error *error);
/* Bytes of the device's memory that a run computes in: activations and workspace. */
uint64_t hn_context_needs(const hn_plan *plan);
/* The same in a block of at least so many bytes of the device's memory, aligned to 64 and borrowed: contexts
 * that run one after the other may have one block. It holds nothing between runs, so results are only to be
 * found where they are bound to. NULL: a context with memory of its own. */
hone_status hn_context_create_in(const hn_plan *plan, void *block, hn_context **out, hone_error *error);
/* From now on in that block. */
hone_status hn_context_move(hn_context *context, void *block, hone_error *error);
/* Before its plan becomes one for other shapes, where it stands: results, what late steps were bound for and
 * what the caller bound are forgotten. */
void hn_context_forget(hn_context *context);
/* Behind that: memory and descriptors as the plan says now. On devices that share the host's memory. */
hone_status hn_context_follow(hn_context *context, hone_error *error);
void hn_context_destroy(hn_context *context);
/* in[i] belongs to plan input i and is borrowed; all were validated by the caller. */
hone_status hn_context_run(hn_context *context, const hone_tensor *const *in, const hn_run_limits *limits,
                           hone_error *error);
const hone_tensor *hn_context_output(const hn_context *context, uint32_t i);
hn_lent *hn_context_lent(hn_context *context); /* memory of the caller for inputs and outputs */
/* Are the next runs timed by the device's own clock? Not unless asked for. */
void hn_context_clock(hn_context *context, bool on);
/* Seconds that the last run, which must have been timed, spent on the device's own clock: inputs in, steps,
 * outputs back. All 0 where the device shares the host's memory. */
hone_status hn_context_times(const hn_context *context, double *h2d, double *infer, double *d2h,
                             hone_error *error);
/* Of such devices: the steps of the last run once more, on the inputs that lie there, by the device's clock.
 */
hone_status hn_context_repeat(hn_context *context, double *seconds, hone_error *error);
/* The same step by step, nothing as captured, by the host's clock. */
hone_status hn_context_issue(hn_context *context, hone_issue *out, hone_error *error);
/* Hardware counters of those of these steps (NULL: of all) that the device does, as facts of them; after a
 * run. */
hone_status hn_context_counters(hn_context *context, const uint32_t *steps, uint32_t n_steps,
                                hone_facts *facts, hone_error *error);
/* Steps of the last run that the host did since no tactic of the device took their shapes: step[i], at most
 * `most`; returns how many. Those that the plan gave to the host (hn_step_falls_back) are not among them. */
uint32_t hn_context_fallen_back(const hn_context *context, uint32_t *step, uint32_t most);
/* Of accelerators: captured work knows addresses, and what callers bind may go to and fro between `most`
 * places (a few, unless this was called), for each of which it is kept. */
hone_status hn_context_keep_captures(hn_context *context, uint32_t most, hone_error *error);
uint64_t hn_context_captured(const hn_context *context); /* how often it was captured so far */
void hn_context_cancel(hn_context *context);
/* Threads of its own for the steps of the runs to come; 0: the device's, which all contexts share. */
hone_status hn_context_set_threads(hn_context *context, uint32_t threads, hone_error *error);
uint64_t hn_context_peak(const hn_context *context);

/* Spans of the next max_runs runs are kept (facts NULL: stops and forgets). */
hone_status hn_context_record(hn_context *context, hone_facts *facts, uint32_t max_runs, hone_error *error);
/* Moves what was recorded into the facts: spans, walls, step, node and memory tables, metadata of the plan.
 */
hone_status hn_context_record_end(hn_context *context, hone_error *error);

/* What the caller does around the runs, as stages of the record: PRE before a run, POST after one. */
void hn_context_stage_begin(hn_context *context, hone_span_kind kind);
void hn_context_stage_end(hn_context *context);

/* Called after each step of the following runs with its outputs in host memory (entries may be NULL; f32
 * where an accelerator stores it narrow); NULL: nobody. writes: the watcher may change them, and the steps
 * that follow read what it left. */
typedef void (*hn_step_watch)(void *arg, const hn_step *step, hone_tensor *const *out);
void hn_context_watch(hn_context *context, hn_step_watch watch, void *arg, bool writes);

/* Called right before and right after each step of the following runs, on devices that do one step after
 * another; NULL: nobody. */
typedef void (*hn_step_edge)(void *arg, uint32_t step, bool after);
void hn_context_edges(hn_context *context, hn_step_edge edge, void *arg);

#endif
