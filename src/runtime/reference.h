/* Steps that an operator's scalar reference does, or whose bodies are interpreted. */
#ifndef HN_RUNTIME_REFERENCE_H
#define HN_RUNTIME_REFERENCE_H

#include "model/ir/eval.h"
#include "optimize/plan/plan.h"
#include "runtime/lent.h"

/* What they have, and keep from step to step. */
typedef struct hn_references {
  const hn_plan *plan;
  bool apart;                /* the device has memory of its own */
  hn_lent *lent;             /* memory of the caller for outputs; NULL: none */
  const hone_tensor *tensor; /* by slot */
  const hone_tensor **tin;   /* scratch for the widest step: what it reads, */
  hone_tensor **tout;        /* and what it makes */
  hn_arena keep;             /* bytes of string elements, what is in sequences; until the next run */
  void *scratch;             /* one block, grown between runs */
  size_t scratch_size, scratch_used, scratch_wanted;
  hn_arena overflow; /* scratch that did not fit this time */
  hn_budget budget;
} hn_references;

/* The step, from what tin points at to what tout points at. */
hone_status hn_run_reference(hn_references *r, const hn_step *s, hone_error *error);
/* HONE_ERROR_INPUT unless output i has the shape that the plan has room for: operands whose shapes the run
 * alone knows may not fit what the graph says. */
hone_status hn_same_as_planned(const hn_step *s, uint32_t i, const hone_tensor_desc *made,
                               const hone_tensor_desc *planned, hone_error *error);
/* Memory of the host for values and for references: of the pool where the device's is the host's. */
void hn_heap_free(const hn_references *r, void *at);

#endif
