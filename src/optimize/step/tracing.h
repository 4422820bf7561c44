/* What a device did and when: the part of the vtable by which asynchronous devices are profiled.
 *
 * From open to close all work of a queue is written down, in segments too, by the device's own clock; times
 * come back as hn_now_ns would have said. Segments remember to which step their work belongs, so whoever
 * traces captures them anew after open, and again after close (tracing may have put events into them).
 * Several queues may be traced at once. */
#ifndef HN_OPTIMIZE_STEP_TRACING_H
#define HN_OPTIMIZE_STEP_TRACING_H

#include <hone/facts.h>

typedef struct hn_trace hn_trace;
struct hn_device;
struct hn_queue;

typedef struct hn_tracing {
  /* Where the profiler's library is missing or refuses, events are recorded around what is marked. */
  hone_status (*open)(struct hn_device *device, struct hn_queue *queue, hn_trace **out, hone_error *error);
  /* What the selected lane is given from here on is of this kind and belongs to this step (-1: to none),
   * until the next mark of that lane; HONE_SPAN_KIND_COUNT ends it. Copies outside of steps may go unmarked.
   */
  hone_status (*mark)(hn_trace *trace, hone_span_kind kind, int32_t step, hone_error *error);
  /* Before the first work of a run, and after the sync that ends it. */
  hone_status (*begin_run)(hn_trace *trace, hone_error *error);
  hone_status (*end_run)(hn_trace *trace, hone_error *error);
  /* Everything so far, in order of start. Lanes are 1, 2, ... (0 is the host), iterations 0, 1, ... by
   * begin_run, -1 outside of runs. Records and names live until close. lost: records that the device could
   * not keep. */
  hone_status (*take)(hn_trace *trace, const hone_span_record **records, size_t *count, uint64_t *lost,
                      hone_error *error);
  /* Where the times come from ("CUPTI 13.0 activity records"), and why not from something better or NULL. */
  const char *(*source)(const hn_trace *trace, const char **why_not_better);
  void (*close)(hn_trace *trace);
} hn_tracing;

/* Hardware counters of a piece of work: id, name in the facts, unit. The names are those that importers of
 * other tools' counters use (docs/guide/importers.md), so rules, bounds and reports read both alike. */
#define HN_DEVICE_COUNTS(X)                                                                                  \
  X(COMPUTE, "compute_pct_of_peak", "%") /* the busiest unit of the multiprocessors */                       \
  X(MEMORY, "memory_pct_of_peak", "%")   /* the busiest of L1, L2 and DRAM, or their buses */                \
  X(DRAM, "dram_pct_of_peak", "%")                                                                           \
  X(L2, "l2_pct_of_peak", "%")                                                                               \
  X(L1, "l1_pct_of_peak", "%")                                                                               \
  X(TENSOR, "tensor_pipe_pct", "%")                                                                          \
  X(L1_HIT, "l1_hit_pct", "%")                                                                               \
  X(L2_HIT, "l2_hit_pct", "%")                                                                               \
  X(OCCUPANCY, "occupancy_pct", "%")        /* warps in flight of those that fit */                          \
  X(IPC, "instructions_per_cycle", "")      /* of a multiprocessor */                                        \
  X(ISSUE, "issue_slots_pct", "%")          /* cycles in which a scheduler issued, of all */                 \
  X(BRANCH, "branch_uniform_pct", "%")      /* branch targets that all threads of a warp took together */    \
  X(THREADS, "threads_per_instruction", "") /* active ones of the 32 of a warp */
enum {
#define X(id, name, unit) HN_COUNT_##id,
  HN_DEVICE_COUNTS(X)
#undef X
      HN_COUNTS,
  HN_COUNTS_OF_BOUNDS = HN_COUNT_L2 + 1 /* the first ones, which tell what bounds a step */
};
typedef struct hn_counts {
  double value[HN_COUNTS]; /* NaN: not known */
} hn_counts;
/* Gives piece i to the device. */
typedef hone_status (*hn_counted_work)(void *arg, uint32_t i, hone_error *error);

#endif
