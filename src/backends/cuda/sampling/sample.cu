/* GridSample and AffineGrid. A thread an output element. */
#include "direct.cuh"

enum { HN_NEAREST, HN_LINEAR, HN_CUBIC };
enum { HN_ZEROS, HN_BORDER, HN_REFLECTION };

#ifdef HN_MODE /* GridSample. Prefix: HN_AXES, HN_MODE, HN_PAD, HN_ALIGN */
#define HN_TAPS (HN_MODE == HN_NEAREST ? 1 : HN_MODE == HN_LINEAR ? 2 : 4)

typedef struct hn_taps {
  i64 index[4]; /* -1: a zero of the padding */
  double weight[4];
} hn_taps;

/* Reflects x at low and high until it lies between them. */
HN_FN double hn_reflect(double x, double low, double high) {
  const double range = high - low, beyond = x < low ? low - x : x > high ? x - high : 0;
  if (!(range > 0)) return low;
  if (beyond == 0) return x;
  const double turns = floor(beyond / range), rest = beyond - turns * range;
  const int even = fmod(turns, 2.0) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

HN_FN i64 hn_tap(double i, i64 n) {
  if (HN_PAD == HN_ZEROS) return i >= 0 && i < (double)n ? (i64)i : -1;
  if (HN_PAD == HN_REFLECTION)
    i = HN_ALIGN ? hn_reflect(i, 0, (double)n - 1) : hn_reflect(i, -0.5, (double)n - 0.5);
  return !(i > 0) ? 0 : i >= (double)n ? n - 1 : (i64)i;
}

/* Coordinates are rounded after every operation, as the definition's: ties of NEAREST fall as elsewhere. */
HN_FN void hn_find_taps(float g, i64 n, hn_taps *t) {
  const double key = -0.75; /* parameter of Keys' kernel */
  const float size = (float)n, beside = __fadd_rn(g, 1.0f);
  const float coordinate = HN_ALIGN ? __fmul_rn(beside / 2, size - 1) : __fadd_rn(__fmul_rn(beside, size), -1.0f) / 2;
  const double low = HN_ALIGN ? 0 : -0.5, high = HN_ALIGN ? (double)n - 1 : (double)n - 0.5;
  double x = HN_MODE == HN_NEAREST ? rint((double)coordinate) : (double)coordinate;
  if (x != x) x = -100; /* outside, whatever the padding makes of that */
  const int endless = x - x != 0;
  if (x < low || x > high) {
    /* Cubic weights keep the true place; its taps are moved to the border one by one. */
    if (HN_PAD == HN_BORDER && HN_MODE != HN_CUBIC) x = x < 0 ? 0 : (double)n - 1;
    if (HN_PAD == HN_REFLECTION) x = endless ? low : hn_reflect(x, low, high);
  }
  if (HN_MODE == HN_NEAREST) {
    t->index[0] = hn_tap(HN_PAD == HN_ZEROS ? x : rint(x), n), t->weight[0] = 1;
    return;
  }
  const double base = floor(x), f = x - x != 0 ? 0 : x - base;
  for (int k = 0; k < HN_TAPS; k++) {
    const double at = base + k - (HN_MODE == HN_CUBIC), d = fabs((double)k - (HN_MODE == HN_CUBIC) - f);
    t->index[k] = hn_tap(at, n);
    t->weight[k] = HN_MODE == HN_LINEAR ? 1 - d
                   : d <= 1             ? ((key + 2) * d - (key + 3)) * d * d + 1
                                        : ((key * d - 5 * key) * d + 8 * key) * d - 4 * key;
  }
}

/* p: channels, elements of an input plane, points of an image; from 4 dimensions of the input. */
HN_EACH(hn_grid_sample) {
  const u32 points = (u32)a->p[2], line = i / points, point = i - line * points;
  const u32 image = line / (u32)a->p[0];
  const i64 from = ((i64)image * points + point) * HN_AXES, plane = line * a->p[1];
  hn_taps t[HN_AXES];
  double sum = 0;
  /* The grid names the last axis first. */
  for (int d = 0; d < HN_AXES; d++)
    hn_find_taps((float)HN_IN(1, from + HN_AXES - 1 - d), a->p[4 + d], &t[d]);
  int combinations = 1;
  for (int d = 0; d < HN_AXES; d++) combinations *= HN_TAPS;
  for (int c = 0; c < combinations; c++) {
    double w = 1;
    i64 at = 0;
    int rest = c, outside = 0, each = combinations;
    for (int d = 0; d < HN_AXES; d++) {
      each /= HN_TAPS;
      const int k = rest / each;
      rest -= k * each;
      outside |= t[d].index[k] < 0;
      at = at * a->p[4 + d] + t[d].index[k];
      w *= t[d].weight[k];
    }
    if (!outside) sum += w * HN_IN(0, plane + at);
  }
  HN_OUT(0, i, sum);
}
#endif

#ifdef HN_GRID_AXES /* AffineGrid. Prefix: HN_GRID_AXES, HN_ALIGN */
/* Normalised coordinate of element i of n. */
HN_FN double hn_place(u32 i, i64 n) {
  if (HN_ALIGN) return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : -1;
  return -1 + (2 * (double)i + 1) / (double)n;
}

/* p: points of an image; from 4 its dimensions. A thread a point. */
HN_EACH(hn_affine_grid) {
  const u32 image = i / (u32)a->p[0];
  u32 left = i - image * (u32)a->p[0];
  double at[HN_GRID_AXES + 1];
  for (int d = HN_GRID_AXES - 1; d >= 0; d--) { /* the last axis is the first coordinate */
    const u32 n = (u32)a->p[4 + d], next = left / n;
    at[HN_GRID_AXES - 1 - d] = hn_place(left - next * n, n);
    left = next;
  }
  at[HN_GRID_AXES] = 1;
  for (int r = 0; r < HN_GRID_AXES; r++) {
    double sum = 0;
    for (int c = 0; c <= HN_GRID_AXES; c++)
      sum += HN_IN(0, ((i64)image * HN_GRID_AXES + r) * (HN_GRID_AXES + 1) + c) * at[c];
    HN_OUT(0, (i64)i * HN_GRID_AXES + r, sum);
  }
}
#endif
