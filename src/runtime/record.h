/* Span capture of a context: time stamps around steps, and their conversion to facts. */
#ifndef HN_RUNTIME_RECORD_H
#define HN_RUNTIME_RECORD_H

#include "base/os.h"
#include "optimize/step/step.h"

#include <hone/facts.h>

typedef struct hn_recorder {
  hone_facts *facts; /* NULL: not recording */
  hone_span_buffer spans;
  int64_t *wall; /* [max_runs] */
  uint32_t max_runs, runs;
  uint32_t step; /* that is being run, recording or not */
  int64_t step_start, run_start, run_last;
  int64_t stage_start;  /* of the caller's stage that is under way */
  hone_span_kind stage; /* PRE or POST; RUN: none */
  bool past;            /* the last run was not recorded any more */
  hn_trace *trace;      /* of devices that work behind the host's back; NULL: none */
  const hn_tracing *tracing;
  const struct hn_late *late; /* what late steps turned out to be */
  /* When recording began: the clock, processor time of everybody and of this process, interruptions of it. */
  uint64_t started_ns, interrupted;
  double busy_seconds, own_seconds, delay_seconds;
} hn_recorder;

/* queue: what is recorded of a device with memory of its own, NULL otherwise. */
hone_status hn_recorder_init(hn_recorder *r, hone_facts *facts, const hn_plan *plan, hn_queue *queue,
                             uint32_t max_runs, hone_error *error);
void hn_recorder_free(hn_recorder *r);
hone_status hn_recorder_finish(hn_recorder *r, const hn_plan *plan, uint64_t actual_peak, hone_error *error);

/* The steps of a plan as preview steps of the facts, with the seconds that each was timed at, and those that
 * its kernel is known to take (NULL: none; 0: not this one). */
void hn_recorder_preview(const hn_plan *plan, const double *seconds, const double *scaled, hone_facts *facts);

static inline bool hn_recording(const hn_recorder *r) { return r->facts && r->runs < r->max_runs; }

static inline void hn_recorder_run_begin(hn_recorder *r) {
  r->past = !hn_recording(r);
  if (!r->past) r->run_start = r->run_last = (int64_t)hn_now_ns();
}

/* The caller's own stages: PRE belongs to the run that follows, POST to the one before. */
static inline void hn_recorder_stage_begin(hn_recorder *r, hone_span_kind kind) {
  r->stage = kind;
  if (r->facts) r->stage_start = (int64_t)hn_now_ns();
}

static inline void hn_recorder_stage_end(hn_recorder *r) {
  const bool before = r->stage == HONE_SPAN_PRE;
  if (before ? hn_recording(r) : r->facts && r->runs && !r->past && r->stage == HONE_SPAN_POST)
    hone_span_push(&r->spans, r->stage, 0, (int)r->runs - !before, -1, r->stage_start, (int64_t)hn_now_ns(),
                   0, NULL);
  r->stage = HONE_SPAN_RUN;
}

static inline void hn_recorder_begin(hn_recorder *r) {
  if (hn_recording(r)) r->step_start = (int64_t)hn_now_ns();
}

/* What a step's time is spent on. */
static inline hone_span_kind hn_recorder_kind(const hn_step *s) {
  switch (s->role) {
  case HONE_STEP_COPY: return s->desc.output[0].desc.device ? HONE_SPAN_COPY_H2D : HONE_SPAN_COPY_D2H;
  case HONE_STEP_REFORMAT: return HONE_SPAN_REFORMAT;
  case HONE_STEP_CONTROL: return HONE_SPAN_HOST;
  default: return HONE_SPAN_KERNEL;
  }
}

static inline void hn_recorder_end(hn_recorder *r, const hn_step *s) {
  if (!hn_recording(r)) return;
  r->run_last = (int64_t)hn_now_ns();
  hone_span_push(&r->spans, hn_recorder_kind(s), 0, (int)r->runs, (int)r->step, r->step_start, r->run_last, 0,
                 NULL);
}

static inline void hn_recorder_run_end(hn_recorder *r, bool complete) {
  if (hn_recording(r) && complete)
    hone_span_push(&r->spans, HONE_SPAN_RUN, 0, (int)r->runs, -1, r->run_start, r->run_last, 0, NULL);
}

/* What the host itself did since `start`, beside a device: launching, waiting. Returns the time. */
static inline int64_t hn_recorder_host(hn_recorder *r, hone_span_kind kind, int64_t start, const char *name) {
  if (!hn_recording(r)) return 0;
  r->run_last = (int64_t)hn_now_ns();
  hone_span_push(&r->spans, kind, 0, (int)r->runs, -1, start, r->run_last, 0, name);
  return r->run_last;
}

/* What the device is given from here on belongs to step k (-1: to none); KIND_COUNT: to nobody. */
static inline hone_status hn_recorder_mark(hn_recorder *r, hone_span_kind kind, int32_t k,
                                           hone_error *error) {
  return r->trace ? r->tracing->mark(r->trace, kind, k, error) : HONE_OK;
}

/* Wall time of the whole call by the outer clock; ends the iteration. */
static inline void hn_recorder_wall(hn_recorder *r, uint64_t ns) {
  if (!hn_recording(r)) return;
  r->wall[r->runs++] = (int64_t)ns;
}

#endif
