/* Indices of Gather, Scatter and their relations, as tactics read them. */
#ifndef HN_CPU_MOVEMENT_INDICES_H
#define HN_CPU_MOVEMENT_INDICES_H

#include <hone/plugin.h>

#include "backends/cpu/step/step.h"

/* Whether input 1 of the step is row-major i32 or i64 of a known shape; *wide: i64. */
bool hn_indices_accept(const hone_step *s, bool *wide, hone_reason *why);

/* Fails for the first of `n` indices that names no place in a dimension of `dim`, as the reference does. */
hone_status hn_indices_check(const hone_step *s, const void *indices, bool wide, int64_t n, int64_t dim,
                             hone_error *error);
/* The same for tuples of `length` indices in i64, of dimensions dim[length]. */
hone_status hn_indices_check_tuples(const hone_step *s, const int64_t *tuples, int64_t n, int64_t length,
                                    const int64_t *dim, hone_error *error);

#endif
