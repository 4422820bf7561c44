/* What a context keeps for its late steps. Inside of runtime only; runtime/late.h tells what they are. */
#ifndef HN_RUNTIME_LATE_STATE_H
#define HN_RUNTIME_LATE_STATE_H

#include "model/ir/eval.h"
#include "runtime/remote.h"

typedef struct hn_bound hn_bound;
typedef struct hn_late hn_late;

typedef struct hn_late_block {
  void *at;
  size_t bytes;
} hn_late_block;

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
  hn_bound **bound; /* by step; NULL: none yet */
  bool *fell_back;  /* by step: the reference did it in the last run */
  void *workspace;
  size_t workspace_bytes;
  HN_VEC(hn_late_block) used, spare; /* blocks of outputs */
  hn_arena bodies_arena;
  HN_VEC(hn_body_step *) bodies; /* those that were met, in the order of their addresses */
  HN_VEC(uint64_t) key;          /* what a step's operands are now */
  bool often;                    /* what is being bound has come again and again with the same shapes */
};

#endif
