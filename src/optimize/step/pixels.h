/* Channels-last tensors as backends see them. */
#ifndef HN_OPTIMIZE_STEP_PIXELS_H
#define HN_OPTIMIZE_STEP_PIXELS_H

#include <hone/plugin.h>

/* Distances in elements of a tensor whose channels are contiguous: pixel (n, z, y, x) starts at
 * n * batch + z * slice + y * row + x * pixel. */
typedef struct hn_view {
  int64_t batch, slice, row, pixel;
} hn_view;

static inline int64_t hn_view_at(const hn_view *v, int64_t n, int64_t z, int64_t y, int64_t x) {
  return n * v->batch + z * v->slice + y * v->row + x * v->pixel;
}

/* A channels-last tensor of rank 3 to 5 (or any layout whose memory looks like it): spatial sizes with
 * leading ones, pixel distance, and whether the pixels of an image are evenly spaced.  False: channels are
 * not contiguous. */
typedef struct hn_pixels {
  int64_t batch, channels, size[3];
  hn_view view;
  bool even; /* row = width * pixel and slice = height * row */
} hn_pixels;
bool hn_pixels_of(const hone_tensor_desc *d, hn_pixels *out);

#endif
