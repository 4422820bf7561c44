/* Binding a late step: from the shapes that its operands have now to a tactic, its packed constants and its
 * outputs' shapes. Inside of runtime only. */
#ifndef HN_RUNTIME_LATE_BIND_H
#define HN_RUNTIME_LATE_BIND_H

#include "runtime/late_state.h"

/* Input 0 or an output in another layout than the plan has: brought there by a step of its own. */
typedef struct hn_late_move {
  hone_step step;
  hone_step_tensor from, to;
  const hone_tactic_desc *tactic; /* NULL: it lies as the plan has it */
  void *blob;
} hn_late_move;

/* Packed constants that say nothing of shapes (hone_tactic_desc.shared): they stay when shapes change. */
typedef struct hn_late_weights {
  const hone_tactic_desc *tactic; /* NULL: there are none */
  uint64_t key, form;             /* the tactic's key; what else they follow from, as a hash */
  size_t bytes;
  void *memory;
  const void *at; /* in it */
} hn_late_weights;

/* What was chosen for the operands that `key` describes. */
struct hn_bound {
  hn_arena arena;
  uint64_t *key; /* dimensions of all inputs, bytes of small ones that the choice depends on */
  size_t key_words;
  hone_step step;
  hone_step_tensor *in, *out;
  const hone_tactic_desc *tactic; /* NULL: the host does it, or nothing is to be done (a view) */
  void *blob;                     /* where the device reads it */
  hn_late_weights weights;
  bool flush;                   /* denormal numbers count as zero (optimize/step/denormals.h) */
  hn_late_move *before, *after; /* of input 0; by output. NULL: all is row-major */
};

/* What the choice depends on, into key (NULL: only counts). */
size_t hn_late_describe(const hn_step *s, const hone_tensor *const *tin, uint64_t *key);
/* Do the elements tell the dimensions? What is bound for is then the most that they can be. */
bool hn_late_counted(const hn_step *s);

/* Makes *out, or leaves it NULL. `before`: what the step was bound for until now, which is used up: packed
 * weights are taken over where they are the same; NULL: nothing. most: bytes that a run may have; nothing is
 * chosen, and nothing packed, for operands and results beyond that (0: any). */
hone_status hn_late_bind(hn_late *late, const hn_step *step, const hone_tensor *const *tin, hn_bound *before,
                         uint64_t most, hn_bound **out, hone_error *error);
void hn_late_forget(hn_late *late); /* unbinds all steps */

/* Bytes of a step's operands or results, as they count where a choice must pay: functions that the reference
 * calls the C library for, an element at a time, are dear. */
int64_t hn_late_weighed(const hone_step *step, int64_t bytes);

#endif
