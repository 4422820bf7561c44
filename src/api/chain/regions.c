#include "api/chain/regions.h"

#include "base/error.h"
#include "base/vec.h"

#include <math.h>

/* Leftmost and rightmost pixel of a region's rows. */
typedef struct span {
  int64_t from, to;
} span;

typedef struct point {
  double x, y;
} point;

typedef struct search {
  const float *map;
  int64_t height, width;
  float threshold;
  uint8_t *seen;
  int64_t *stack;
  span *span;   /* [height] of the region */
  point *point; /* [2 * height + 2] */
  point *hull;  /* [4 * height + 8] */
} search;

static void visit(search *s, int64_t at, int64_t *n) {
  if (s->seen[at] || !(s->map[at] > s->threshold)) return;
  s->seen[at] = 1;
  s->stack[(*n)++] = at;
}

/* The region of pixel `start`: its rows. Every pixel is put on the stack once. */
static int64_t fill(search *s, int64_t start, int64_t *top, int64_t *bottom) {
  int64_t n = 0, pixels = 0;
  *top = *bottom = start / s->width;
  s->span[*top] = (span){s->width, -1};
  visit(s, start, &n);
  while (n) {
    const int64_t at = s->stack[--n], y = at / s->width, x = at % s->width;
    pixels++;
    while (*bottom < y) s->span[++*bottom] = (span){s->width, -1};
    if (x < s->span[y].from) s->span[y].from = x;
    if (x > s->span[y].to) s->span[y].to = x;
    for (int64_t j = y > 0 ? y - 1 : 0; j <= y + 1 && j < s->height; j++)
      for (int64_t i = x > 0 ? x - 1 : 0; i <= x + 1 && i < s->width; i++) visit(s, j * s->width + i, &n);
  }
  return pixels;
}

static double cross(point a, point b, point c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/* Corners of the pixels at the ends of the rows, by y and then x: two a line between rows. */
static uint32_t corners(search *s, int64_t top, int64_t bottom) {
  uint32_t n = 0;
  for (int64_t y = top; y <= bottom + 1; y++) {
    const span *above = y > top ? &s->span[y - 1] : &s->span[top];
    const span *below = y <= bottom ? &s->span[y] : above;
    const int64_t from = above->from < below->from ? above->from : below->from;
    const int64_t to = above->to > below->to ? above->to : below->to;
    s->point[n++] = (point){(double)from, (double)y};
    s->point[n++] = (point){(double)(to + 1), (double)y};
  }
  return n;
}

/* Andrew's monotone chain over sorted points. */
static uint32_t hull_of(search *s, uint32_t n) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    while (k >= 2 && cross(s->hull[k - 2], s->hull[k - 1], s->point[i]) <= 0) k--;
    s->hull[k++] = s->point[i];
  }
  const uint32_t half = k + 1;
  for (uint32_t i = n - 1; i-- > 0;) {
    while (k >= half && cross(s->hull[k - 2], s->hull[k - 1], s->point[i]) <= 0) k--;
    s->hull[k++] = s->point[i];
  }
  return k - 1;
}

/* Around the hull with sides along (ux, uy). */
static hn_rectangle along(const point *hull, uint32_t n, double ux, double uy) {
  double u0 = INFINITY, u1 = -INFINITY, v0 = INFINITY, v1 = -INFINITY;
  for (uint32_t i = 0; i < n; i++) {
    const double u = hull[i].x * ux + hull[i].y * uy, v = hull[i].y * ux - hull[i].x * uy;
    u0 = fmin(u0, u), u1 = fmax(u1, u), v0 = fmin(v0, v), v1 = fmax(v1, v);
  }
  const double u = (u0 + u1) / 2, v = (v0 + v1) / 2;
  return (hn_rectangle){u * ux - v * uy, u * uy + v * ux, ux, uy, (u1 - u0) / 2, (v1 - v0) / 2};
}

/* The direction turned by right angles until it is within 45 degrees of the x axis. */
static void to_the_right(double *ux, double *uy) {
  const double x = *ux, y = *uy;
  if (fabs(y) > fabs(x)) *ux = y, *uy = -x;
  if (*ux < 0) *ux = -*ux, *uy = -*uy;
}

/* One side of the least rectangle lies on the hull. */
static hn_rectangle least(const point *hull, uint32_t n) {
  hn_rectangle best = along(hull, n, 1, 0);
  for (uint32_t i = 0; i < n; i++) {
    const point a = hull[i], b = hull[(i + 1) % n];
    const double length = hypot(b.x - a.x, b.y - a.y);
    double ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
    if (!(length > 0)) continue;
    to_the_right(&ux, &uy);
    const hn_rectangle r = along(hull, n, ux, uy);
    if (r.w * r.h < best.w * best.h * (1 - 1e-12)) best = r;
  }
  return best;
}

hone_status hn_regions_find(const float *map, int64_t height, int64_t width, float threshold, bool upright,
                            uint32_t most, hn_arena *arena, hn_region **out, uint32_t *n, hone_error *error) {
  const int64_t count = height * width;
  HN_VEC(hn_region) found = {0};
  search s = {.map = map,
              .height = height,
              .width = width,
              .threshold = threshold,
              .seen = HN_NEW_ARRAY(arena, uint8_t, (size_t)count + 1),
              .stack = hn_arena_raw(arena, ((size_t)count + 1) * sizeof *s.stack, 64),
              .span = HN_NEW_ARRAY(arena, span, (size_t)height + 1),
              .point = HN_NEW_ARRAY(arena, point, 2 * (size_t)height + 2),
              .hull = HN_NEW_ARRAY(arena, point, 4 * (size_t)height + 8)};
  *out = NULL;
  *n = 0;
  if (!s.seen || !s.stack || !s.span || !s.point || !s.hull)
    return hn_fail_memory(error, (uint64_t)count * 9, "regions of a map");
  hone_status status = HONE_OK;
  for (int64_t i = 0; i < count && found.len < most && status == HONE_OK; i++) {
    int64_t top, bottom;
    if (s.seen[i] || !(map[i] > threshold)) continue;
    const int64_t pixels = fill(&s, i, &top, &bottom);
    const uint32_t edges = hull_of(&s, corners(&s, top, bottom));
    const hn_region r = {upright ? along(s.hull, edges, 1, 0) : least(s.hull, edges), pixels};
    if (!hn_vec_push(&found, r)) status = hn_fail_memory(error, found.len * sizeof r, "regions of a map");
  }
  if (status == HONE_OK && found.len && !(*out = hn_arena_memdup(arena, found.ptr, found.len * sizeof **out)))
    status = hn_fail_memory(error, found.len * sizeof **out, "regions of a map");
  if (status == HONE_OK) *n = (uint32_t)found.len;
  hn_vec_free(&found);
  return status;
}

double hn_rectangle_mean(const hn_rectangle *r, const float *map, int64_t height, int64_t width) {
  const double reach_x = fabs(r->ux) * r->w + fabs(r->uy) * r->h,
               reach_y = fabs(r->uy) * r->w + fabs(r->ux) * r->h;
  const int64_t x0 = (int64_t)fmax(floor(r->x - reach_x), 0), y0 = (int64_t)fmax(floor(r->y - reach_y), 0);
  const int64_t x1 = (int64_t)fmin(ceil(r->x + reach_x), (double)width),
                y1 = (int64_t)fmin(ceil(r->y + reach_y), (double)height);
  double sum = 0;
  int64_t n = 0;
  for (int64_t y = y0; y < y1; y++)
    for (int64_t x = x0; x < x1; x++) {
      const double dx = (double)x + 0.5 - r->x, dy = (double)y + 0.5 - r->y;
      if (fabs(dx * r->ux + dy * r->uy) > r->w || fabs(dy * r->ux - dx * r->uy) > r->h) continue;
      sum += map[y * width + x];
      n++;
    }
  return n ? sum / (double)n : 0;
}

void hn_rectangle_corners(const hn_rectangle *r, double x[4], double y[4]) {
  static const double side[4] = {-1, 1, 1, -1}, down[4] = {-1, -1, 1, 1};
  for (int i = 0; i < 4; i++) {
    x[i] = r->x + side[i] * r->w * r->ux - down[i] * r->h * r->uy;
    y[i] = r->y + side[i] * r->w * r->uy + down[i] * r->h * r->ux;
  }
}
