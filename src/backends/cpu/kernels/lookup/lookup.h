/* Family "lookup": indices as places of a dimension, negative ones from its end, and elements of 4 bytes by
 * them. Bits are moved, never interpreted. */
#ifndef HN_KERNELS_LOOKUP_H
#define HN_KERNELS_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

/* All return whether an index is outside of [-dim, dim); 0 < dim <= UINT32_MAX. No overlap. */
struct hn_lookup_ops {
  /* place[i] = index[i], or index[i] + dim where it is negative, or 0 where it is outside; i < n. */
  bool (*places_i64)(uint32_t *place, const int64_t *index, size_t n, uint32_t dim);
  bool (*places_i32)(uint32_t *place, const int32_t *index, size_t n, uint32_t dim);
  /* y[i] = x[place of index[i]] from x[dim], dim <= most. */
  uint32_t most; /* 0: there are no such functions */
  bool (*words_i64)(uint32_t *y, const uint32_t *x, const int64_t *index, size_t n, uint32_t dim);
  bool (*words_i32)(uint32_t *y, const uint32_t *x, const int32_t *index, size_t n, uint32_t dim);
};

/* The best table at or below a tier. */
static inline const struct hn_lookup_ops *hn_lookup_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("lookup", "words", isa);
  return k ? (const struct hn_lookup_ops *)k->ops : NULL;
}

#endif
