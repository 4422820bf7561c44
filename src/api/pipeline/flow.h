/* Items through stages, each with its own workers: what is in flight and what waits before a stage is
 * bounded, results are told in the order of submission. It knows neither models nor files. */
#ifndef HN_API_PIPELINE_FLOW_H
#define HN_API_PIPELINE_FLOW_H

#include <hone/status.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_FLOW_STAGES = 3, HN_FLOW_WORKERS = 256, HN_FLOW_IN_FLIGHT = 4096 };

typedef struct hn_flow hn_flow;

typedef struct hn_flow_work {
  void *arg;
  /* Does a stage of the item in `slot`, which is that item's alone until it was told. What fails skips the
   * stages that are left. */
  hone_status (*run)(void *arg, uint32_t stage, uint32_t worker, uint32_t slot, hone_error *error);
  /* Every item that was submitted, once, in order, one call at a time. The slot is free afterwards. It may
   * cancel the flow, but neither submit to it nor close it. */
  void (*tell)(void *arg, uint64_t number, uint32_t slot, hone_status status, const hone_error *error);
} hn_flow_work;

typedef struct hn_flow_options {
  uint32_t workers[HN_FLOW_STAGES];
  uint32_t queue[HN_FLOW_STAGES]; /* items that may wait before a stage; [0]: only in_flight bounds them */
  uint32_t in_flight;             /* slots: items submitted and not yet told */
} hn_flow_options;

typedef struct hn_flow_stats {
  uint64_t submitted, told, failed, cancelled;
  uint64_t busy_ns[HN_FLOW_STAGES], items[HN_FLOW_STAGES];
  uint32_t most_waiting[HN_FLOW_STAGES], most_in_flight;
} hn_flow_stats;

hone_status hn_flow_create(const hn_flow_options *options, const hn_flow_work *work, hn_flow **out,
                           hone_error *error);
/* Waits for a slot, lets `fill` put the item there, and hands it to the first stage. One thread submits.
 * HONE_ERROR_CANCELLED after a cancel: nothing was taken then. */
hone_status hn_flow_submit(hn_flow *flow, void (*fill)(void *arg, uint32_t slot), void *arg,
                           hone_error *error);
/* From any thread: stages that began end, no other begins; items not done are told as HONE_ERROR_CANCELLED.
 * What a stage does must be ended by its owner. */
void hn_flow_cancel(hn_flow *flow);
/* Until everything that was submitted is told. */
void hn_flow_drain(hn_flow *flow);
void hn_flow_stats_get(hn_flow *flow, hn_flow_stats *out);
void hn_flow_destroy(hn_flow *flow); /* drains */

#endif
