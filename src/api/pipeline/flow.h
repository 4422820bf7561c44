/* Items through stages, each with its own workers: what is in flight and what waits before a stage is
 * bounded, results are told in the order of submission. It knows neither models nor files. */
#ifndef HN_API_PIPELINE_FLOW_H
#define HN_API_PIPELINE_FLOW_H

#include <hone/status.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_FLOW_STAGES = 3, HN_FLOW_WORKERS = 256, HN_FLOW_IN_FLIGHT = 4096, HN_FLOW_BATCH = 1024 };

typedef struct hn_flow hn_flow;

/* An item that a stage has: its slot is that item's alone until it was told. What fails skips the stages that
 * are left. */
typedef struct hn_flow_item {
  uint32_t slot;
  hone_status status; /* HONE_OK at first */
  hone_error *error;
} hn_flow_item;

typedef struct hn_flow_work {
  void *arg;
  /* Does a stage of item[n], the oldest that wait for it; n is 1 where the stage takes one at a time. */
  void (*run)(void *arg, uint32_t stage, uint32_t worker, hn_flow_item *item, uint32_t n);
  /* Every item that was submitted, once, in order, one call at a time. The slot is free afterwards. It may
   * cancel the flow or close it, but neither submit to it nor destroy it. */
  void (*tell)(void *arg, uint64_t number, uint32_t slot, hone_status status, const hone_error *error);
} hn_flow_work;

typedef struct hn_flow_options {
  uint32_t workers[HN_FLOW_STAGES]; /* threads; as many are at work at first */
  uint32_t queue[HN_FLOW_STAGES];   /* items that may wait before a stage; [0]: only in_flight bounds them */
  uint32_t batch[HN_FLOW_STAGES];   /* items that a worker takes at once, 0: 1. It waits for so many while any
                                     * are in the stages before. Queues around have room for them */
  uint32_t in_flight;               /* slots: items submitted and not yet told */
} hn_flow_options;

/* Times of items end when they leave; `area`s are of all moments so far, so that two of them tell what was
 * between: items * ns. */
typedef struct hn_flow_stats {
  uint64_t submitted, told, failed, cancelled;
  uint64_t items[HN_FLOW_STAGES], runs[HN_FLOW_STAGES]; /* that left the stage, and in how many runs */
  uint64_t busy_ns[HN_FLOW_STAGES];                     /* of runs */
  uint64_t spent_ns[HN_FLOW_STAGES];                    /* of items: a run of n counts n times */
  uint64_t waited_ns[HN_FLOW_STAGES];                   /* of items, before the stage */
  uint64_t held_ns;                                     /* done, and waiting for those before them */
  uint64_t whole_ns;                                    /* from submission until they were told */
  uint64_t waiting_area[HN_FLOW_STAGES], running_area[HN_FLOW_STAGES], /* items that wait, workers that run */
      active_area[HN_FLOW_STAGES];                                     /* workers that may run */
  uint64_t begin_ns, now_ns;                                           /* areas grow from the first on */
  uint32_t waiting[HN_FLOW_STAGES], running[HN_FLOW_STAGES], active[HN_FLOW_STAGES], in_flight;
  uint32_t most_waiting[HN_FLOW_STAGES], most_in_flight;
} hn_flow_stats;

hone_status hn_flow_create(const hn_flow_options *options, const hn_flow_work *work, hn_flow **out,
                           hone_error *error);
/* Waits for a slot, lets `fill` put the item there, and hands it to the first stage. One thread submits.
 * HONE_ERROR_CANCELLED after a cancel or close: nothing was taken then. */
hone_status hn_flow_submit(hn_flow *flow, void (*fill)(void *arg, uint32_t slot), void *arg,
                           hone_error *error);
/* From any thread: how many workers of a stage may run, 1 to options.workers. Those that are above it end
 * what they do first. */
void hn_flow_set_workers(hn_flow *flow, uint32_t stage, uint32_t n);
/* From any thread: nothing is taken any more, also not by a call that waits for a slot. What was goes on. */
void hn_flow_close(hn_flow *flow);
/* From any thread: stages that began end, no other begins; items not done are told as HONE_ERROR_CANCELLED.
 * What a stage does must be ended by its owner. */
void hn_flow_cancel(hn_flow *flow);
/* Until everything that was submitted is told. */
void hn_flow_drain(hn_flow *flow);
void hn_flow_stats_get(hn_flow *flow, hn_flow_stats *out);
void hn_flow_destroy(hn_flow *flow); /* drains */

#endif
