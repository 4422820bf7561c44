/* Indices of Gather and its relations, as tactics read them. */
#ifndef HN_CPU_MOVEMENT_INDICES_H
#define HN_CPU_MOVEMENT_INDICES_H

#include <hone/plugin.h>

#include "backends/cpu/step/step.h"

/* Whether input 1 of the step is row-major i32 or i64 of a known shape; *wide: i64. */
bool hn_indices_accept(const hone_step *s, bool *wide, hone_reason *why);

static inline int64_t hn_index_at(const void *indices, bool wide, int64_t i) {
  return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* The place in a dimension of `dim` that an index names, negative ones from the end; negative or >= dim where
 * there is none. */
static inline int64_t hn_index_place(int64_t index, int64_t dim) { return index < 0 ? index + dim : index; }

/* Fails for the first of `n` indices that names no place in a dimension of `dim`, as the reference does. */
hone_status hn_indices_check(const hone_step *s, const void *indices, bool wide, int64_t n, int64_t dim,
                             hone_error *error);

#endif
