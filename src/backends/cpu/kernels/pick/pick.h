/* Family "pick": pixels whose elements of 4 bytes come from given places of one source pixel each; a place
 * may be wanted often or never. Bits are moved, never interpreted. */
#ifndef HN_KERNELS_PICK_H
#define HN_KERNELS_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_PICK_LANES = 16 };

/* What a vector of the destination has from one vector of the source. */
typedef struct hn_pick_window {
  int32_t at;                  /* the source vector's first element */
  uint32_t live;               /* so many elements from there belong to the source pixel, at most a vector */
  uint32_t lanes;              /* bit l: lane l of the destination is one of them: */
  int32_t from[HN_PICK_LANES]; /* at + from[l] */
} hn_pick_window;

typedef struct hn_pick {
  size_t n;              /* elements of a destination pixel */
  const uint32_t *first; /* [vectors + 1]: vector v is made of windows first[v] to first[v + 1] - 1 */
  const hn_pick_window *window;
} hn_pick;

struct hn_pick_ops {
  uint32_t vw; /* elements of a vector */
  /* `count` pixels, `dst_step` and `src_step` elements apart; no overlap. */
  void (*pixels)(const hn_pick *pick, uint32_t *dst, ptrdiff_t dst_step, const uint32_t *src,
                 ptrdiff_t src_step, size_t count);
};

/* The best table at or below a tier. */
static inline const struct hn_pick_ops *hn_pick_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pick", "words", isa);
  return k ? (const struct hn_pick_ops *)k->ops : NULL;
}

#endif
