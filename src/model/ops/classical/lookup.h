/* Lists of keys in which elements of tensors are looked up: texts, integers or reals, of which the last of
 * equal ones counts and NaN equals NaN. */
#ifndef HN_MODEL_OPS_CLASSICAL_LOOKUP_H
#define HN_MODEL_OPS_CLASSICAL_LOOKUP_H

#include "model/ops/common/convert.h"

enum { HN_LOOKUP_BLOCK = 256 };

typedef struct hn_lookup {
  const hone_tensor *keys;
  const uint64_t *code; /* of numbers: equal where the keys are */
  uint32_t *slot;       /* places + 1, 0: free; a power of two of them */
  uint64_t mask;
} hn_lookup;

/* Of the elements of keys, which stays where it is, in the call's scratch. */
hone_status hn_lookup_make(hone_call *call, const hone_tensor *keys, hn_lookup *out, hone_error *error);
/* place[n] of elements first... of x among the keys, n <= HN_LOOKUP_BLOCK; -1: none. x is of the keys' type;
 * beside keys that are integers it may be any number, of which the whole part counts. */
void hn_lookup_places(const hn_lookup *l, const hone_tensor *x, int64_t first, int64_t n, int64_t *place);

#endif
