/* Boxes by their corners, and when two of them overlap too much. */
#ifndef HN_CORNERS_CUH
#define HN_CORNERS_CUH

#include "prelude.cuh"

typedef struct hn_corners {
  float y0, x0, y1, x1;
} hn_corners;

/* Rounded after every operation, so that thresholds fall as on the host. */
HN_FN int hn_overlaps(hn_corners a, hn_corners b, float threshold) {
  const float height = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0), width = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0);
  if (!(height > 0 && width > 0)) return 0;
  const float area_a = __fmul_rn(a.y1 - a.y0, a.x1 - a.x0), area_b = __fmul_rn(b.y1 - b.y0, b.x1 - b.x0);
  const float both = __fmul_rn(height, width), either = __fadd_rn(__fadd_rn(area_a, area_b), -both);
  return area_a > 0 && area_b > 0 && either > 0 && both / either > threshold;
}

#endif
