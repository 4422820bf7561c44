/* A context from inside: what the files that run it share. */
#ifndef HN_RUNTIME_INSIDE_H
#define HN_RUNTIME_INSIDE_H

#include "optimize/plan/plan.h"
#include "runtime/context.h"
#include "runtime/late.h"
#include "runtime/record.h"
#include "runtime/remote.h"

/* Consecutive steps that the device does without the host: captured once, launched as a whole. */
typedef struct piece {
  uint32_t first, count;
  bool apart;          /* one step that is not captured: the host's, or one that only the run can describe */
  hn_segment *segment; /* NULL: launched step by step */
} piece;

struct hn_context {
  const hn_plan *plan;
  bool apart; /* the device has memory of its own: */
  hn_remote remote;
  hn_late late;
  piece *pieces;
  uint32_t n_pieces;
  hone_tensor *returned; /* by output: what was copied from the device */
  hn_lent lent;
  void *arena, *workspace; /* workspace: one a lane */
  bool borrowed;           /* these two are in somebody else's block */
  hone_tensor *tensor;     /* by slot; data of arena slots is fixed */
  const void **in;         /* scratch for the widest step */
  void **out;
  const hone_tensor **tin;
  hone_tensor **tout;
  const hone_tensor *const *given; /* inputs of the run in progress */
  hn_arena keep;                   /* bytes of string elements, what is in sequences; until the next run */
  hn_arena own;                    /* copies of sequences and optionals that were given; until the next run */
  const hone_tensor **adopted;     /* inputs, these among them; NULL: all are plain tensors */
  void *scratch;                   /* of references: one block, grown between runs */
  size_t scratch_size, scratch_used, scratch_wanted;
  hn_arena overflow; /* scratch that did not fit this time */
  hn_budget budget;
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

/* Frees what a step of unknown shape has made. */
void hn_heap_free(const hn_context *c, void *at);

/* reference.c: the step by its operator's scalar reference, or its body interpreted; tin and tout are set. */
hone_status hn_run_reference(hn_context *c, const hn_step *s, hone_error *error);

#endif
