/* Which sizes may be padded to which, as it was proved: model/padding.h for every pair that came up. */
#ifndef HN_API_SHAPES_PROOFS_H
#define HN_API_SHAPES_PROOFS_H

#include "model/padding.h"

#include <hone/shapes.h>

typedef struct hn_sizes {
  int64_t of[HONE_PROFILES]; /* by profile; 0 behind the last */
} hn_sizes;

typedef struct hn_proofs hn_proofs;

/* bindings: what is fixed beside the profiles' dimensions, borrowed. The model is retained. */
hone_status hn_proofs_create(hone_model *model, const hone_plan_options *plan, char *const *symbol,
                             uint32_t n_profiles, hn_proofs **out, hone_error *error);
void hn_proofs_destroy(hn_proofs *proofs);
/* Values of a model: inputs without an initializer, then outputs. */
uint32_t hn_proofs_values(const hn_proofs *proofs);
/* May inputs of `wanted` be padded to `size`? map: room for n_profiles * hn_proofs_values entries, where the
 * k-th dimension lies in each value (HN_PAD_SAME where it is not padded), or NULL. Thread-safe. */
hone_status hn_proofs_get(hn_proofs *proofs, const hn_sizes *wanted, const hn_sizes *size, hn_pad *map,
                          bool *proved, hone_reason *why, hone_error *error);

/* False: the precision takes statistics over all elements, so that nothing may be padded or joined. */
bool hn_proofs_precision(const char *precision, hone_reason *why);

/* The plan's bindings with those of the sizes; free with hn_free. NULL: out of memory. */
hone_binding *hn_shapes_bindings(const hone_plan_options *plan, char *const *symbol, uint32_t n_profiles,
                                 const hn_sizes *size, uint32_t *n);

#endif
