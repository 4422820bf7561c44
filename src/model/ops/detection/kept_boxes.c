/* Boxes that are kept so far, in strips. */
#include "model/ops/detection/kept_boxes.h"

#include <float.h>

enum { MOST_STRIPS = 1024, PLACES = 3 /* for a box on average: its own width, and an edge on both sides */ };

static float least(float a, float b) { return a < b ? a : b; }
static float greatest(float a, float b) { return a > b ? a : b; }

hn_box hn_box_of(const float c[4]) {
  return (hn_box){{c[0], c[1], c[2], c[3]}, (c[2] - c[0]) * (c[3] - c[1])};
}

hone_status hn_kept_boxes_init(hone_call *call, int64_t most, hn_kept_boxes *k, hone_error *error) {
  *k = (hn_kept_boxes){.capacity = PLACES * most};
  for (int i = 0; i < 4; i++)
    if (!(k->corner[i] = hn_scratch(call, k->capacity, sizeof(float), error))) return HONE_ERROR_MEMORY;
  k->area = hn_scratch(call, k->capacity, sizeof *k->area, error);
  k->first = k->area ? hn_scratch(call, MOST_STRIPS, sizeof *k->first, error) : NULL;
  k->n = k->first ? hn_scratch(call, MOST_STRIPS, sizeof *k->n, error) : NULL;
  return k->n ? HONE_OK : HONE_ERROR_MEMORY;
}

/* The strip of a place; grows with it, so what lies between two places lies between their strips. */
static int64_t strip(const hn_kept_boxes *k, float at) {
  const float s = (at - k->from) / k->width;
  return !(s > 0) ? 0 : s < (float)(k->n_strips - 1) ? (int64_t)s : k->n_strips - 1;
}

/* How many boxes can touch each strip, in n[]; returns their sum. */
static int64_t touched(hn_kept_boxes *k, const float *corner, const int64_t *index, int64_t n) {
  int64_t sum = 0;
  for (int64_t s = 0; s < k->n_strips; s++) k->n[s] = 0;
  for (int64_t i = 0; i < n; i++) {
    const float *c = corner + 4 * index[i];
    const int64_t from = strip(k, c[k->axis]), to = strip(k, c[k->axis + 2]);
    for (int64_t s = from; s <= to; s++) k->n[s]++;
    sum += to - from + 1;
    if (sum > k->capacity) break;
  }
  return sum;
}

void hn_kept_boxes_start(hn_kept_boxes *k, const float *corner, const int64_t *index, int64_t n) {
  float best = 1;
  k->n_strips = 1, k->axis = 0, k->from = 0, k->width = 1;
  for (int32_t axis = 0; axis < 2 && n > 0; axis++) {
    float from = INFINITY, to = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
      const float *c = corner + 4 * index[i];
      from = least(from, c[axis]), to = greatest(to, c[axis + 2]);
      sum += (double)c[axis + 2] - (double)c[axis];
    }
    const float width = (float)(sum / (double)n), strips = (to - from) / width;
    if (!(width >= FLT_MIN && isfinite(to - from) && strips > best))
      continue; /* NaN and infinite places, too */
    best = strips;
    k->axis = axis, k->from = from;
    k->n_strips = hn_min((int64_t)least(strips, MOST_STRIPS), MOST_STRIPS);
    k->width = (to - from) / (float)k->n_strips;
  }
  if (touched(k, corner, index, n) > k->capacity) {
    k->n_strips = 1;
    k->n[0] = n;
  }
  int64_t at = 0;
  for (int64_t s = 0; s < k->n_strips; s++) {
    k->first[s] = at;
    at += k->n[s];
    k->n[s] = 0;
  }
}

/* Whether the intersection of b and one of n boxes from `first` on, over their union, is above the threshold
 * (>= 0): never with a box without area, or with NaN. Without branches, of which compilers make vectors. */
static inline bool any_overlap(const hn_kept_boxes *k, int64_t first, int64_t n, const hn_box *b,
                               float threshold) {
  const float *y0 = k->corner[0] + first, *x0 = k->corner[1] + first, *y1 = k->corner[2] + first,
              *x1 = k->corner[3] + first, *area = k->area + first;
  int32_t any = 0;
  for (int64_t i = 0; i < n; i++) {
    const float height = least(b->corner[2], y1[i]) - greatest(b->corner[0], y0[i]);
    const float width = least(b->corner[3], x1[i]) - greatest(b->corner[1], x0[i]);
    const float both = height * width, either = b->area + area[i] - both;
    any |= (height > 0) & (width > 0) & (area[i] > 0) & (either > 0) & (both / either > threshold);
  }
  return any;
}

bool hn_kept_boxes_overlap(const hn_kept_boxes *k, const hn_box *b, float threshold) {
  enum { RUN = 16 };
  if (!(b->area > 0)) return false;
  const int64_t to = strip(k, b->corner[k->axis + 2]);
  for (int64_t s = strip(k, b->corner[k->axis]); s <= to; s++) {
    int64_t i = 0;
    for (; i + RUN <= k->n[s]; i += RUN)
      if (any_overlap(k, k->first[s] + i, RUN, b, threshold)) return true;
    if (any_overlap(k, k->first[s] + i, k->n[s] - i, b, threshold)) return true;
  }
  return false;
}

void hn_kept_boxes_add(hn_kept_boxes *k, const hn_box *b) {
  const int64_t to = strip(k, b->corner[k->axis + 2]);
  for (int64_t s = strip(k, b->corner[k->axis]); s <= to; s++) {
    const int64_t at = k->first[s] + k->n[s]++;
    for (int i = 0; i < 4; i++) k->corner[i][at] = b->corner[i];
    k->area[at] = b->area;
  }
}
