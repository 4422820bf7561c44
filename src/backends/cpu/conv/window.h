/* The geometry of a convolution of one to three dimensions, and which rows of its kernel lie inside the image
 * for an output row. */
#ifndef HN_CPU_CONV_WINDOW_H
#define HN_CPU_CONV_WINDOW_H

#include "base/error.h"
#include "optimize/step/conv_attr.h"

enum { HN_WINDOW_ROWS = 256 }; /* kernel rows of all slices, at most */

typedef struct hn_window {
  int64_t in[3], out[3]; /* depth, height, width */
  int64_t kernel[3], stride[3], dilation[3], pad[3];
} hn_window;

/* A kernel row and the input row under it. */
typedef struct hn_window_row {
  int64_t kernel; /* slice * kernel height + row */
  int64_t z, y;
} hn_window_row;

static inline hn_window hn_window_of(const hn_conv_attr *a) {
  hn_window w;
  for (int i = 0; i < 3; i++) {
    w.in[i] = a->x.size[i], w.out[i] = a->y.size[i], w.kernel[i] = a->kernel[i];
    w.stride[i] = a->stride[i], w.dilation[i] = a->dilation[i], w.pad[i] = a->pad[i];
  }
  return w;
}

/* Whether its rows are few enough, with a reason. */
static inline bool hn_window_fits(const hn_conv_attr *a, hone_reason *why) {
  if (a->kernel[0] <= HN_WINDOW_ROWS && a->kernel[1] <= HN_WINDOW_ROWS &&
      a->kernel[0] * a->kernel[1] <= HN_WINDOW_ROWS)
    return true;
  return hn_refuse(why, "more than %d kernel rows", HN_WINDOW_ROWS);
}

/* The rows under output row y of slice z that lie inside the image; how many there are. */
static inline uint32_t hn_window_rows(const hn_window *w, int64_t z, int64_t y,
                                      hn_window_row rows[HN_WINDOW_ROWS]) {
  uint32_t n = 0;
  for (int64_t d = 0; d < w->kernel[0]; d++) {
    const int64_t at = z * w->stride[0] - w->pad[0] + d * w->dilation[0];
    if (at < 0 || at >= w->in[0]) continue;
    for (int64_t v = 0; v < w->kernel[1]; v++) {
      const int64_t line = y * w->stride[1] - w->pad[1] + v * w->dilation[1];
      if (line >= 0 && line < w->in[1]) rows[n++] = (hn_window_row){d * w->kernel[1] + v, at, line};
    }
  }
  return n;
}

#endif
