/* Taps of a grid's coordinates, by the definition. */
#include "model/ops/sampling/grid.h"
#include "model/ops/common/bulk.h"

hone_status hn_grid_read(const hone_node *node, hn_grid *o, hone_error *error) {
  bool old = hone_node_opset(node) < 20;
  const char *mode = hone_node_string(node, "mode", old ? "bilinear" : "linear");
  const char *pad = hone_node_string(node, "padding_mode", "zeros");
  o->align = hone_node_int(node, "align_corners", 0) != 0;
  if (!strcmp(mode, "nearest"))
    o->mode = HN_GRID_NEAREST;
  else if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear"))
    o->mode = HN_GRID_LINEAR;
  else if (!strcmp(mode, "cubic") || !strcmp(mode, "bicubic"))
    o->mode = HN_GRID_CUBIC;
  else
    return hn_op_bad(node, error, "mode is \"%s\"", mode);
  if (!strcmp(pad, "zeros"))
    o->pad = HN_GRID_ZEROS;
  else if (!strcmp(pad, "border"))
    o->pad = HN_GRID_BORDER;
  else if (!strcmp(pad, "reflection"))
    o->pad = HN_GRID_REFLECTION;
  else
    return hn_op_bad(node, error, "padding_mode is \"%s\"", pad);
  return HONE_OK;
}

/* Reflects x at lo and hi until it lies between them. */
static double reflect(double x, double lo, double hi) {
  double range = hi - lo, beyond = x < lo ? lo - x : x > hi ? x - hi : 0;
  if (!(range > 0)) return lo;
  if (beyond == 0) return x;
  double turns = floor(beyond / range), rest = beyond - turns * range;
  bool even = fmod(turns, 2) == 0;
  return (x < lo) == even ? lo + rest : hi - rest;
}

static int64_t tap_index(const hn_grid *o, double i, int64_t n) {
  if (o->pad == HN_GRID_ZEROS) return i >= 0 && i < (double)n ? (int64_t)i : -1;
  if (o->pad == HN_GRID_REFLECTION)
    i = o->align ? reflect(i, 0, (double)n - 1) : reflect(i, -0.5, (double)n - 0.5);
  return !(i > 0) ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

void hn_grid_find(const hn_grid *o, float g, int64_t n, hn_grid_taps *t) {
  const double a = -0.75; /* parameter of Keys' kernel */
  float coordinate = hn_grid_place(o, g, (float)n);
  double x = o->mode == HN_GRID_NEAREST ? (double)rintf(coordinate) : (double)coordinate;
  double lo = o->align ? 0 : -0.5, hi = o->align ? (double)n - 1 : (double)n - 0.5;
  if (isnan(x)) x = -100; /* outside, whatever the padding makes of that */
  if (x < lo || x > hi) {
    /* Cubic weights keep the true place; its taps are moved to the border one by one. */
    if (o->pad == HN_GRID_BORDER && o->mode != HN_GRID_CUBIC) x = x < 0 ? 0 : (double)n - 1;
    if (o->pad == HN_GRID_REFLECTION) x = isinf(x) ? lo : reflect(x, lo, hi);
  }
  double base = floor(x), f = x - base;
  if (isinf(x)) f = 0;
  if (o->mode == HN_GRID_NEAREST) {
    *t = (hn_grid_taps){1, {tap_index(o, o->pad == HN_GRID_ZEROS ? x : rint(x), n)}, {1}};
    return;
  }
  t->n = o->mode == HN_GRID_LINEAR ? 2 : HN_GRID_MOST;
  for (int32_t k = 0; k < t->n; k++) {
    double at = base + k - (o->mode == HN_GRID_CUBIC), d = fabs((double)k - (o->mode == HN_GRID_CUBIC) - f);
    t->index[k] = tap_index(o, at, n);
    t->weight[k] = o->mode == HN_GRID_LINEAR ? 1 - d
                   : d <= 1                  ? ((a + 2) * d - (a + 3)) * d * d + 1
                                             : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
}
