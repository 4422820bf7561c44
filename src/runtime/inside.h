/* A context from inside, for the files that do what context.h says: life.c (it comes and goes), run.c (one
 * run), steps.c (one step of it), apart.c (runs of a device with memory of its own), probes.c (what such a
 * device can be asked about its steps). Inside of runtime only. */
#ifndef HN_RUNTIME_INSIDE_H
#define HN_RUNTIME_INSIDE_H

#include "runtime/context.h"
#include "runtime/late.h"
#include "runtime/record.h"
#include "runtime/reference.h"
#include "runtime/remote.h"
#include "runtime/slices.h"

/* Consecutive steps that the device does without the host: captured once, launched as a whole. */
typedef struct hn_piece {
  uint32_t first, count;
  bool apart;          /* one step that is not captured: the host's, or one that only the run can describe */
  bool waits;          /* such a step reads what the device makes for the host */
  bool copies;         /* between the device and the host, in any direction */
  hn_segment *segment; /* NULL: launched step by step. A capture's */
} hn_piece;

/* Segments of all pieces with what is lent at some addresses. */
typedef struct hn_capture {
  void **at;            /* [inputs of the block, outputs] */
  hn_segment **segment; /* [n_pieces] */
  uint64_t used;        /* the latest has the highest number */
} hn_capture;

struct hn_context {
  const hn_plan *plan;
  bool apart; /* the device has memory of its own: */
  hn_remote remote;
  hn_references ref;
  hn_late late;
  hn_piece *pieces;
  uint32_t n_pieces;
  hn_capture *capture; /* [most_captures] that were made */
  uint32_t n_captures, most_captures;
  uint64_t captured, captures_used; /* how often, so far */
  bool stale;   /* something lies elsewhere than when the pieces were captured, or not all of them were */
  bool copying; /* copies may be on their way between the device and the host's arena */
  hone_tensor *returned; /* by output: what was copied from the device */
  hn_slices slices;      /* of plans that run a slice of the batch after the other */
  hn_lent lent;
  void *arena, *workspace;               /* workspace: one a lane */
  uint64_t arena_bytes, workspace_bytes; /* of its own memory */
  bool borrowed;                         /* these two are in somebody else's block */
  hone_tensor *tensor;                   /* by slot; data of arena slots is fixed */
  const void **in;                       /* scratch for the widest step */
  void **out;
  const hone_tensor *const *given; /* inputs of the run in progress */
  hn_arena own;                    /* copies of sequences and optionals that were given; until the next run */
  const hone_tensor **adopted;     /* inputs, these among them; NULL: all are plain tensors */
  uint64_t most_bytes, most_bytes_at; /* what the system was found to have, and when */
  uint64_t heap_peak;
  uint64_t touched;
  _Atomic bool cancel;
  hn_recorder recorder;
  hn_step_watch watch;
  void *watch_arg;
  bool watch_writes;
  hn_step_edge edge;
  void *edge_arg;
};

/* ------------------------------------------------------------------ steps.c */

/* Where a slot's data are in the run in progress. */
void *hn_steps_data(const hn_context *c, uint32_t slot);
/* Frees what the run before has left on the heap. */
void hn_steps_drop(hn_context *c);
/* Does a step, or gives it to the device. */
hone_status hn_steps_issue(hn_context *c, const hn_step *s, hone_error *error);
/* Frees what nobody reads after step k, and keeps count of the arena's high-water mark. */
void hn_steps_done(hn_context *c, const hn_step *s, uint32_t k);
/* Step k with all that belongs to it: limits, record, watcher, and what is done behind it. */
hone_status hn_steps_do(hn_context *c, uint32_t k, hone_error *error);
/* All steps in order. */
hone_status hn_steps_all(hn_context *c, hone_error *error);

/* ------------------------------------------------------------------ apart.c */

/* Cuts the steps at those that cannot be captured, and captures what lies between them. What cannot be
 * captured is launched step by step. */
hone_status hn_apart_open(hn_context *c, hone_error *error);
void hn_apart_close(hn_context *c);
/* Forgets what was captured: it is again when the next run begins. */
void hn_apart_forget(hn_context *c);
/* Captures the pieces, again when they were before: what a trace wants to know of them goes into segments.
 * Where something that is lent has no address yet, there is nothing to capture. */
hone_status hn_apart_capture(hn_context *c, hone_error *error);
/* The pieces in order; whole: as they were captured, otherwise step by step. */
hone_status hn_apart_pieces(hn_context *c, bool whole, hone_error *error);
/* Inputs to the device, the pieces in order, outputs back. */
hone_status hn_apart_run(hn_context *c, hone_error *error);

#endif
