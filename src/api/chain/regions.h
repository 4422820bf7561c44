/* Regions of a map: what is connected above a threshold, and the smallest rectangle around it. Coordinates
 * are those of edges: pixel (x, y) covers [x, x + 1) x [y, y + 1). */
#ifndef HN_API_CHAIN_REGIONS_H
#define HN_API_CHAIN_REGIONS_H

#include "base/arena.h"

#include <hone/status.h>
#include <stdbool.h>
#include <stdint.h>

/* A rectangle that may be turned: its middle, the direction of its width (a unit vector), half its sides. The
 * direction of its height is (-uy, ux). */
typedef struct hn_rectangle {
  double x, y, ux, uy, w, h;
} hn_rectangle;

typedef struct hn_region {
  hn_rectangle around;
  int64_t pixels;
} hn_region;

/* Regions of 8-connected pixels with values above the threshold, in the order of their first pixels; the
 * first `most` of them. upright: rectangles along the axes, else those of the least area, whose direction is
 * within 45 degrees of the x axis. All is in the arena. */
hone_status hn_regions_find(const float *map, int64_t height, int64_t width, float threshold, bool upright,
                            uint32_t most, hn_arena *arena, hn_region **out, uint32_t *n, hone_error *error);
/* Mean of the values whose pixels' middles are inside; 0 when there are none. */
double hn_rectangle_mean(const hn_rectangle *r, const float *map, int64_t height, int64_t width);
/* Corners clockwise from the top left one. */
void hn_rectangle_corners(const hn_rectangle *r, double x[4], double y[4]);

#endif
