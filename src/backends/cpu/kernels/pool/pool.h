/* Pooling kernels over channels-last images: one call computes one row of output pixels. */
#ifndef HN_KERNELS_POOL_H
#define HN_KERNELS_POOL_H

#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

/* How the values of a row lie. */
typedef enum hn_stored { HN_STORED_F32, HN_STORED_F16, HN_STORED_BF16, HN_STORED_COUNT } hn_stored;

/* One output row. All distances are in values. The driver clips the window in depth and height (those taps
 * are the same for the whole row); the kernel clips it in width. */
struct hn_pool_row {
  const void *src;          /* first valid tap row: input pixel 0 of that row */
  ptrdiff_t taps_z, taps_y; /* valid taps in depth and height; either may be 0 */
  ptrdiff_t step_z, step_y; /* from one such tap to the next */
  ptrdiff_t width, pitch;   /* input pixels in a row; distance between them */
  ptrdiff_t kernel, stride, dilation, pad_begin, pad_end; /* along the width, in pixels */
  ptrdiff_t counted_zy; /* average with counted padding: taps in depth x height that count, else 0 */
  ptrdiff_t channels;
  void *dst;
  ptrdiff_t out_width, out_pitch;
};

struct hn_pool_ops {
  /* Maximum; -inf where the window holds padding alone; NaN wins. */
  void (*max[HN_STORED_COUNT])(const struct hn_pool_row *row);
  /* Mean over the valid taps, or over the counted ones when counted_zy > 0; 0 where there are none. */
  void (*average[HN_STORED_COUNT])(const struct hn_pool_row *row);
};

/* The best table at or below a tier. */
static inline const struct hn_pool_ops *hn_pool_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pool", "f32", isa);
  return k ? (const struct hn_pool_ops *)k->ops : NULL;
}

#endif
