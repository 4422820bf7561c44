/* Every value of one side's run, by name, for comparing another side's with. Inside of improve only. */
#ifndef HN_IMPROVE_VALUES_H
#define HN_IMPROVE_VALUES_H

#include "base/map.h"
#include "improve/side.h"

typedef struct hn_values { /* zeroed: empty */
  hn_map kept;             /* value name -> hone_tensor, row-major */
  HN_VEC(hone_tensor *) tensors;
  const hn_plan *plan;
  uint64_t bytes;
  bool failed;
} hn_values;

/* Runs the side and keeps what its steps make (up to 2 GiB). Free `out` in any case. */
hone_status hn_values_of_run(hn_side *side, const hn_feed *feeds, uint32_t n, hn_values *out,
                             hone_error *error);
/* The kept tensor that has v's name and t's type and dimensions, or NULL. */
const hone_tensor *hn_values_like(const hn_values *values, const hn_value *v, const hone_tensor *t);
void hn_values_free(hn_values *values);

/* The value of a step's output, where it is one of the graph's. */
const hn_value *hn_value_of_step(const hn_plan *plan, const hn_step *step, uint32_t i);

/* A row-major copy, whatever the layout; NULL when memory is short. */
hone_tensor *hn_rows_of(const hone_tensor *t);
/* Writes row-major elements into a tensor of any layout. */
void hn_rows_put(const hone_tensor *rows, hone_tensor *to);
void hn_rows_free(hone_tensor *rows);

#endif
