/* What a context keeps for its late steps. Inside of runtime only; runtime/late.h tells what they are. */
#ifndef HN_RUNTIME_LATE_STATE_H
#define HN_RUNTIME_LATE_STATE_H

#include "model/ir/eval.h"
#include "runtime/lent.h"
#include "runtime/remote.h"

typedef struct hn_bound hn_bound;
typedef struct hn_late hn_late;

enum { HN_LATE_COUNTED = 4, HN_LATE_RANK = 8 }; /* outputs of a step that counts, and their dimensions */

typedef struct hn_late_block {
  void *at;
  size_t bytes;
} hn_late_block;

/* A step whose count is on its way to the host: its outputs have the dimensions that they may have at most.
 */
typedef struct hn_late_count {
  uint32_t step;
  hone_tensor *out[HN_LATE_COUNTED]; /* NULL: left out */
} hn_late_count;

/* A node of a body of If, Loop or Scan that has tactics. */
typedef struct hn_body_step {
  const hone_node *node;
  hn_step step; /* without slots; anchor NULL: it is the reference's */
  hn_bound *bound;
  uint32_t met; /* so many times in a row with operands of these shapes, which no tactic was chosen for */
} hn_body_step;

struct hn_late {
  const hn_plan *plan;
  hn_remote *remote;
  hn_lent *lent;    /* where the caller wants outputs */
  hn_bound **bound; /* by step; NULL: none yet */
  bool *fell_back;  /* by step: the reference did it in the last run */
  void *workspace;
  size_t workspace_bytes;
  HN_VEC(hn_late_block) used, spare; /* blocks of outputs */
  int64_t *count;                    /* pinned memory: what each of the steps below has counted */
  uint32_t n_counting, *counting;    /* by step: its place there and 1; 0: it counts nothing */
  HN_VEC(hn_late_count) counts;      /* that the host has not waited for */
  bool *uncounted;                   /* by slot: it is an output of these */
  hn_arena bodies_arena;
  HN_VEC(hn_body_step *) bodies; /* those that were met, in the order of their addresses */
  HN_VEC(uint64_t) key;          /* what a step's operands are now */
  bool often;                    /* what is being bound has come again and again with the same shapes */
};

#endif
