/* A context's side of plans that take the batch in slices (optimize/plan/slices.h): parts of the inputs, and
 * outputs put together. Inside of runtime only. */
#ifndef HN_RUNTIME_SLICES_H
#define HN_RUNTIME_SLICES_H

#include "optimize/step/step.h"

typedef struct hn_slices {
  hone_tensor *part;        /* by input: of the slice that is run */
  const hone_tensor **list; /* the same as a run takes them */
  hone_tensor *whole;       /* by output: all slices, where the run puts them; NULL: the plan has none */
  void **own;               /* by output: memory of the context, once a run needs it */
} hn_slices;

hone_status hn_slices_open(const hn_plan *plan, hn_slices *out, hone_error *error);
void hn_slices_close(const hn_plan *plan, hn_slices *slices);
/* The inputs of slice s, in the memory of all of them. */
const hone_tensor *const *hn_slices_cut(const hn_plan *plan, hn_slices *slices, const hone_tensor *const *all,
                                        uint32_t s);
/* Where the run puts output i together: `lent`, or memory of the context's own. */
hone_status hn_slices_place(const hn_plan *plan, hn_slices *slices, uint32_t i, void *lent,
                            hone_error *error);
/* Output i of slice s goes to its place in the whole. */
void hn_slices_join(hn_slices *slices, uint32_t i, uint32_t s, const hone_tensor *made);

#endif
