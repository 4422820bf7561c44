/* Memory that callers lend a context: where its inputs lie and where its outputs go. Inside of runtime and
 * api only.
 *
 * An output that has memory of its own in the arena is made in the caller's instead: its slot and the views
 * of it are moved there before the run. Where the run finds out the shape, the step that is bound then writes
 * there. What lies elsewhere (a view of an input, a constant, a part of a larger tensor, what references make
 * in the run) is copied when the run is done; by the accelerator itself where it has made it and reaches the
 * caller's memory. */
#ifndef HN_RUNTIME_LENT_H
#define HN_RUNTIME_LENT_H

#include "optimize/step/step.h"

#include <hone/session.h>

typedef struct hn_lent_input {
  hone_tensor given; /* data NULL: nothing is bound */
  hone_tensor plain; /* what the run reads: the same, or row-major memory of the context's own */
  void *own;
} hn_lent_input;

typedef struct hn_lent_output {
  bool bound;
  hone_tensor to;
  hone_allocate allocate; /* NULL: `to` has the memory, of all runs */
  void *arg;
  int64_t given;  /* bytes that `allocate` gave for this run; 0: it was not asked, or for none */
  bool here;      /* the slot lies where it may be moved */
  bool straight;  /* the device writes it there by itself, when all steps are done */
  bool late;      /* the run finds out the shape, and a late step may write it where the caller wants it */
  const void *at; /* its place, as it was moved to; NULL: in the arena */
  const void *late_at; /* where a late step of the last run wrote it; NULL: not in the caller's memory */
  hone_tensor result;  /* of the last run; data NULL: not in the caller's memory */
} hn_lent_output;

typedef struct hn_lent {
  hn_lent_input *input;   /* [n_inputs]; NULL: none was ever bound */
  hn_lent_output *output; /* [n_outputs]; the same */
} hn_lent;

/* Arguments were checked; NULL: no longer. They take effect with the next run. */
hone_status hn_lent_bind_input(const hn_plan *plan, hn_lent *lent, uint32_t i, const hone_tensor *tensor,
                               hone_error *error);
hone_status hn_lent_bind_output(const hn_plan *plan, hn_lent *lent, uint32_t i, const hone_tensor *tensor,
                                hone_error *error);
hone_status hn_lent_bind_allocator(const hn_plan *plan, hn_lent *lent, uint32_t i, hone_allocate allocate,
                                   void *arg, hone_error *error);
void hn_lent_free(const hn_plan *plan, hn_lent *lent);

/* What is bound to input i, as a run takes it and as it was given; NULL: nothing. */
const hone_tensor *hn_lent_input_of(const hn_lent *lent, uint32_t i);
const hone_tensor *hn_lent_given(const hn_lent *lent, uint32_t i);
/* The memory that output i is bound to; NULL: none, or an allocator's. */
const hone_tensor *hn_lent_given_output(const hn_lent *lent, uint32_t i);
/* The first output but `except` (-1: none) to which some of the tensor's bytes are bound, or -1. */
int64_t hn_lent_overlap(const hn_plan *plan, const hn_lent *lent, const hone_tensor *tensor, int64_t except);

/* Before a run: brings inputs together that do not lie row after row. */
bool hn_lent_gathers(const hn_plan *plan, const hn_lent *lent, const hone_tensor *const *in);
void hn_lent_gather(const hn_plan *plan, const hn_lent *lent, const hone_tensor *const *in);
/* Gives the root slot's bytes, and all views of them, another place (tensor: the context's, by slot). */
void hn_slot_move(const hn_plan *plan, hone_tensor *tensor, uint32_t root, void *to);
/* Before a run: moves slots (tensor: the context's) to the caller's memory, and back; *moved becomes true
 * where any did. On a device with memory of its own that is what lies there. */
hone_status hn_lent_place(const hn_plan *plan, hn_lent *lent, hone_tensor *tensor, void *arena, bool *moved,
                          hone_error *error);
/* Are all outputs where the last run had them? */
bool hn_lent_stays(const hn_plan *plan, const hn_lent *lent);
/* Is output i's slot in the caller's memory? */
bool hn_lent_moved(const hn_lent *lent, uint32_t i);
/* In a run, where the caller wants the tensor of a slot on the heap, whose shape is known now; *at NULL:
 * nowhere, or there is too little room. */
hone_status hn_lent_late(const hn_plan *plan, hn_lent *lent, uint32_t slot, const hone_tensor_desc *desc,
                         void **at, hone_error *error);
/* Did a late step write these bytes where the caller wanted them? */
bool hn_lent_holds(const hn_plan *plan, const hn_lent *lent, const void *data);
/* The arena has another place, and all slots are in it. */
void hn_lent_forget(const hn_plan *plan, hn_lent *lent);
/* Where the device itself copies output i to; NULL: nowhere. */
void *hn_lent_straight(const hn_lent *lent, uint32_t i);
/* Where the caller wants output i put together, which it is told beforehand and lies row after row; NULL:
 * nowhere. */
void *hn_lent_whole(const hn_plan *plan, const hn_lent *lent, uint32_t i);
/* After a run: output i was made there. */
hone_status hn_lent_fill(const hn_plan *plan, hn_lent *lent, uint32_t i, const hone_tensor *made,
                         hone_error *error);
/* Output i of the last run in the caller's memory; NULL: it is not there. */
const hone_tensor *hn_lent_result(const hn_lent *lent, uint32_t i);

#endif
