/* What right answers may be where a rounding may fall either way. A step may round in its midst what nobody
 * sees: one level of difference there may be several behind a steep function, and is nothing wrong. So the
 * nodes between a value and what was known before the step are evaluated by their references, once for every
 * choice of roundings: each QuantizeLinear on the way rounds what is about halfway between two levels all up,
 * or all down. A right element is what some choice makes of it. Inside of improve only. */
#ifndef HN_IMPROVE_ROUNDINGS_H
#define HN_IMPROVE_ROUNDINGS_H

#include "model/ir/eval.h"

/* Types whose values come from a rounding to levels; of 16 bits only where a QuantizeLinear makes them. */
static inline bool hn_narrow_codes(hone_dtype t) {
  return (hone_dtype_size(t) == 1 && t != HONE_DTYPE_BOOL) || t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16;
}

/* What is known of a run, by value of the graph that its steps stand for. */
typedef struct hn_seen_values {
  /* What was given to the step, or to those before it; NULL: it was not seen. */
  const hone_tensor *(*of)(const void *arg, const hn_value *value);
  /* What the reference calls so: the same numbers unless a pass moved the name. NULL: nothing. */
  const hone_tensor *(*named)(const void *arg, const hn_value *value);
  const void *arg;
  const void *absent; /* where the data of constants points whose bytes are not kept; NULL: all are */
  double slack;       /* right floats lie within this part of a tensor's range of each other */
} hn_seen_values;

/* Does it round floats in its midst, and give floats? Last bits decide, and nothing of it is seen. */
bool hn_rounds_within(const hone_node *n);

typedef struct hn_right {
  bool seen;     /* something rounds on the way, and it was evaluated; false: nothing is said */
  bool complete; /* every choice was made: each element depends on one of each rounding's alone */
  int64_t wrong; /* elements of either tensor that no choice makes */
  int64_t first; /* the first of them */
  double worst;  /* and the largest difference between the two where there is one */
} hn_right;

/* Whether both `got` and `reference`, row-major and alike, are right answers for `value` at the elements
 * where they differ by more than `apart`. What has no reference is not seen. HONE_ERROR_BUDGET: the budget's
 * time is over, and nothing is said. */
hone_status hn_right_answers(const hn_seen_values *known, const hn_value *value, const hone_tensor *got,
                             const hone_tensor *reference, double apart, hn_budget *budget, hn_right *out,
                             hone_error *error);

/* The value itself, by the references of its nodes; by_name: floats on the way are believed to be what the
 * reference calls so. out->data NULL: not seen. Free it with hn_free. HONE_ERROR_BUDGET as above. */
hone_status hn_right_answer(const hn_seen_values *known, const hn_value *value, bool by_name,
                            hn_budget *budget, hone_tensor *out, hone_error *error);

#endif
