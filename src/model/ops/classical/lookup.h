/* Lists of keys in which elements of tensors are looked up: texts, integers or reals, of which the last of
 * equal ones counts and NaN equals NaN. */
#ifndef HN_MODEL_OPS_CLASSICAL_LOOKUP_H
#define HN_MODEL_OPS_CLASSICAL_LOOKUP_H

#include "model/ops/common/convert.h"

typedef struct hn_lookup {
  struct hn_lookup_key *keys; /* sorted */
  int64_t n;
} hn_lookup;

/* Of the elements of keys, in the call's scratch. */
hone_status hn_lookup_make(hone_call *call, const hone_tensor *keys, hn_lookup *out, hone_error *error);
/* The place in `keys` of element i of x; -1: none. */
int64_t hn_lookup_find(const hn_lookup *l, const hone_tensor *x, int64_t i);

#endif
