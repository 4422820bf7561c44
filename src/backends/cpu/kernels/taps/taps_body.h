/* The body of taps_f32_<tier>.c. */
#include <string.h>

#include "backends/cpu/kernels/taps/taps.h"

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

/* x[at[i]] of n places, 0 where at[i] is below 0 or i is not below n. Only these elements of x are read. */
#if VEC_W == 16
static inline vf pick(const float *x, const int32_t *at, size_t n) {
  const __mmask16 lanes = n < 16 ? (__mmask16)((1u << n) - 1) : (__mmask16)0xffff;
  const __m512i i = _mm512_maskz_loadu_epi32(lanes, at);
  const __mmask16 there = _mm512_mask_cmpge_epi32_mask(lanes, i, _mm512_setzero_si512());
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, i, x, 4);
}
#elif VEC_W == 8
static inline vf pick(const float *x, const int32_t *at, size_t n) {
  const __m256i lanes = v_lanes_below(n), i = _mm256_maskload_epi32(at, lanes);
  const __m256i there = _mm256_andnot_si256(_mm256_srai_epi32(i, 31), lanes);
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, i, _mm256_castsi256_ps(there), 4);
}
#else
static inline vf pick(const float *x, const int32_t *at, size_t n) { return n && *at >= 0 ? x[*at] : 0.0f; }
#endif

/* All lanes, or the first n. */
static inline vf some(const float *p, size_t n) { return n == VEC_W ? v_load(p) : v_loadn(p, n); }
static inline void put(float *p, vf v, size_t n) {
  if (n == VEC_W)
    v_store(p, v);
  else
    v_storen(p, v, n);
}

/* Where a plane's elements are taken from: registers, where they fit a few, or memory. */
#if VEC_W == 16
enum { HELD = 64 };
typedef struct source {
  const float *x;
  vf held[4];
  size_t n_held; /* vectors; 0: the plane is too large */
} source;

static inline source source_of(const float *x, size_t n_x) {
  source s = {x, {v_zero(), v_zero(), v_zero(), v_zero()}, n_x <= HELD ? (n_x + 15) / 16 : 0};
  for (size_t v = 0; v < s.n_held; v++) s.held[v] = some(x + v * 16, n_x - v * 16 < 16 ? n_x - v * 16 : 16);
  return s;
}

static inline vf pick_of(const source *s, const int32_t *at, size_t n) {
  if (s->n_held == 0) return pick(s->x, at, n);
  const __m512i i = _mm512_maskz_loadu_epi32(v_lanes_below(n), at);
  const __mmask16 there = _mm512_cmpge_epi32_mask(i, _mm512_setzero_si512());
  if (s->n_held == 1) return _mm512_maskz_permutexvar_ps(there, i, s->held[0]);
  const vf low = _mm512_maskz_permutex2var_ps(there, s->held[0], i, s->held[1]);
  if (s->n_held == 2) return low;
  const __mmask16 upper = there & _mm512_test_epi32_mask(i, _mm512_set1_epi32(32));
  return _mm512_mask_blend_ps(upper, low, _mm512_permutex2var_ps(s->held[2], i, s->held[3]));
}

/* Taps t and t + 1 of 16 points whose places are neighbours or both nowhere: halves of what is gathered.
 * False where they are not. */
static inline bool pick_pair(const float *x, const int32_t *at, const int32_t *next, vf *a, vf *b) {
  const __m512i i = _mm512_loadu_si512(at), j = _mm512_loadu_si512(next);
  const __mmask16 there = _mm512_cmpge_epi32_mask(i, _mm512_setzero_si512());
  const __m512i after = _mm512_mask_add_epi32(_mm512_set1_epi32(-1), there, i, _mm512_set1_epi32(1));
  if (_mm512_cmpneq_epi32_mask(after, j)) return false;
  const __m512d none = _mm512_setzero_pd();
  const vf low = _mm512_castpd_ps(
               _mm512_mask_i32gather_pd(none, (__mmask8)there, _mm512_castsi512_si256(i), x, 4)),
           high = _mm512_castpd_ps(
               _mm512_mask_i32gather_pd(none, (__mmask8)(there >> 8), _mm512_extracti64x4_epi64(i, 1), x, 4));
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  *a = _mm512_permutex2var_ps(low, even, high);
  *b = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
  return true;
}
#else
typedef struct source {
  const float *x;
  size_t n_held;
} source;
static inline source source_of(const float *x, size_t n_x) {
  (void)n_x;
  return (source){x, 0};
}
static inline vf pick_of(const source *s, const int32_t *at, size_t n) { return pick(s->x, at, n); }
#endif

static inline void plane_points(float *y, const source *x, const hn_taps *s, size_t p, size_t n) {
  vf sum = some(s->base + p, n);
  size_t t = HN_FAULT("taps_first") && s->taps > 1 ? 1 : 0;
#if VEC_W == 16
  for (vf a, b; n == VEC_W && x->n_held == 0 && t + 1 < s->taps; t += 2) {
    const size_t i = t * s->pitch + p;
    if (!pick_pair(x->x, s->at + i, s->at + i + s->pitch, &a, &b)) break;
    sum = v_fma(v_load(s->weight + i), a, sum);
    sum = v_fma(v_load(s->weight + i + s->pitch), b, sum);
  }
#endif
  for (; t < s->taps; t++) {
    const size_t i = t * s->pitch + p;
    sum = v_fma(some(s->weight + i, n), pick_of(x, s->at + i, n), sum);
  }
  put(y + p, sum, n);
}

static void plane(float *y, const float *x, size_t n_x, const hn_taps *s) {
  const source from = source_of(x, n_x);
  size_t p = 0;
  for (; p + VEC_W <= s->points; p += VEC_W) plane_points(y, &from, s, p, VEC_W);
  if (p < s->points) plane_points(y, &from, s, p, s->points - p);
}

/* V vectors of one point's channels; the last one has `last` lanes. */
#define PIXEL(V)                                                                                             \
  do {                                                                                                       \
    vf sum[V];                                                                                               \
    for (size_t v = 0; v < (V); v++) sum[v] = v_set1(s->base[p]);                                            \
    for (size_t t = 0; t < s->taps; t++) {                                                                   \
      const size_t i = t * s->pitch + p;                                                                     \
      if (s->at[i] < 0) continue;                                                                            \
      const float *a = x + s->at[i] * x_pitch + c;                                                           \
      const vf w = v_set1(s->weight[i]);                                                                     \
      for (size_t v = 0; v + 1 < (V); v++) sum[v] = v_fma(w, v_load(a + v * VEC_W), sum[v]);                 \
      sum[(V)-1] = v_fma(w, some(a + ((V)-1) * VEC_W, last), sum[(V)-1]);                                    \
    }                                                                                                        \
    for (size_t v = 0; v + 1 < (V); v++) v_store(to + c + v * VEC_W, sum[v]);                                \
    put(to + c + ((V)-1) * VEC_W, sum[(V)-1], last);                                                         \
  } while (0)

static void pixels(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, size_t channels,
                   const hn_taps *s) {
  for (size_t p = 0; p < s->points; p++) {
    float *to = y + (ptrdiff_t)p * y_pitch;
    size_t c = 0;
    for (; c + 4 * VEC_W <= channels; c += 4 * VEC_W) {
      const size_t last = VEC_W;
      PIXEL(4);
    }
    for (; c < channels; c += VEC_W) {
      const size_t last = channels - c < VEC_W ? channels - c : VEC_W;
      PIXEL(1);
    }
  }
}

/* fmax: a number wins against NaN. */
static inline vf larger(vf a, vf b) { return v_sel(v_ne(b, b), a, v_max_number(a, b)); }

static void largest(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, size_t channels,
                    const hn_taps *s) {
  for (size_t p = 0; p < s->points; p++)
    for (size_t c = 0; c < channels; c += VEC_W) {
      const size_t n = channels - c < VEC_W ? channels - c : VEC_W;
      vf most = v_set1(s->base[p]);
      for (size_t t = 0; t < s->taps; t++) {
        const size_t i = t * s->pitch + p;
        most = larger(most, s->at[i] < 0 ? v_zero()
                                         : v_mul(v_set1(s->weight[i]), some(x + s->at[i] * x_pitch + c, n)));
      }
      put(y + (ptrdiff_t)p * y_pitch + c, most, n);
    }
}

/* Integers of a vector, as places need them: numbers that are integers, a * b + c, and all bits where c or d
 * is negative (as well). */
#if VEC_W == 16
typedef __m512i vplace;
static inline vplace place_of(vf v) { return _mm512_cvttps_epi32(v); }
static inline vplace place_in(vplace outer, int32_t size, vplace inner) {
  const vplace at = _mm512_add_epi32(_mm512_mullo_epi32(outer, _mm512_set1_epi32(size)), inner);
  return _mm512_or_si512(at, _mm512_srai_epi32(_mm512_or_si512(outer, inner), 31));
}
static inline void place_put(int32_t *p, vplace v, size_t n) {
  _mm512_mask_storeu_epi32(p, v_lanes_below(n), v);
}
#elif VEC_W == 8
typedef __m256i vplace;
static inline vplace place_of(vf v) { return _mm256_cvttps_epi32(v); }
static inline vplace place_in(vplace outer, int32_t size, vplace inner) {
  const vplace at = _mm256_add_epi32(_mm256_mullo_epi32(outer, _mm256_set1_epi32(size)), inner);
  return _mm256_or_si256(at, _mm256_srai_epi32(_mm256_or_si256(outer, inner), 31));
}
static inline void place_put(int32_t *p, vplace v, size_t n) {
  _mm256_maskstore_epi32(p, v_lanes_below(n), v);
}
#else
typedef int32_t vplace;
static inline vplace place_of(vf v) { return (int32_t)v; }
static inline vplace place_in(vplace outer, int32_t size, vplace inner) {
  return outer < 0 || inner < 0 ? -1 : outer * size + inner;
}
static inline void place_put(int32_t *p, vplace v, size_t n) {
  if (n) *p = v;
}
#endif

/* One axis of a grid: its size, and the places where what lies outside is reflected. */
typedef struct axis {
  float size, lo, hi, range;
} axis;

/* Reflects x at lo and hi until it lies between them. All of it is exact below 2^22: lo and hi are multiples
 * of 1/2, and no difference is larger than what it is taken of. */
static inline vf reflected(vf x, const axis *a) {
  const vf lo = v_set1(a->lo), hi = v_set1(a->hi), range = v_set1(a->range);
  if (!(a->range > 0)) return lo;
  const vm below = v_lt(x, lo), above = v_lt(hi, x);
  const vf beyond = v_sel(below, v_sub(lo, x), v_sub(x, hi));
  vf turns = v_floor(v_div(beyond, range)), rest = v_fnma(turns, range, beyond);
  const vm over = v_lt(rest, v_zero()); /* the quotient was rounded up */
  turns = v_sel(over, v_sub(turns, v_set1(1)), turns), rest = v_sel(over, v_add(rest, range), rest);
  const vf half = v_mul(turns, v_set1(0.5f)), up = v_add(lo, rest), down = v_sub(hi, rest);
  const vm even = v_eq(v_floor(half), half);
  return v_sel(below, v_sel(even, up, down), v_sel(above, v_sel(even, down, up), x));
}

/* The element that a tap at i, an integer, reads: -1 for a zero. */
static inline vplace tap_place(const hn_grid *o, vf i, const axis *a) {
  const vf last = v_set1(a->size - 1);
  if (o->pad == HN_GRID_ZEROS) {
    const vf outside = v_set1(-1);
    return place_of(v_sel(v_lt(i, v_zero()), outside, v_sel(v_lt(last, i), outside, i)));
  }
  if (o->pad == HN_GRID_REFLECTION) i = reflected(i, a);
  return place_of(v_min_number(last, v_max_number(v_zero(), i)));
}

/* Keys' kernel at the four taps around a point that lies f behind the second. */
static inline void cubic(vf f, vf *w) {
  const float a = -0.75f;
  const vf x[] = {v_add(v_set1(1), f), f, v_sub(v_set1(1), f), v_sub(v_set1(2), f)};
  for (int k = 0; k < 4; k += 3) { /* ((a x - 5a) x + 8a) x - 4a */
    const vf inner = v_fma(v_sub(v_mul(v_set1(a), x[k]), v_set1(5 * a)), x[k], v_set1(8 * a));
    w[k] = v_sub(v_mul(inner, x[k]), v_set1(4 * a));
  }
  for (int k = 1; k < 3; k++) /* ((a + 2) x - (a + 3)) x^2 + 1 */
    w[k] = v_fma(v_mul(v_sub(v_mul(v_set1(a + 2), x[k]), v_set1(a + 3)), x[k]), x[k], v_set1(1));
}

/* The taps of one axis; *far becomes true in lanes that are too far off. */
static inline void axis_taps(const hn_grid *o, vf g, const axis *a, vplace *place, vf *w, vf *far) {
  const vf one = v_set1(1), half = v_set1(0.5f), size = v_set1(a->size), most = v_set1(0x1p23f);
  vf x = v_add(g, one);
  x = o->align ? v_mul(v_mul(x, half), v_sub(size, one)) : v_mul(v_sub(v_mul(x, size), one), half);
  if (o->mode == HN_GRID_NEAREST) x = v_round(x);
  x = v_sel(v_ne(x, x), v_set1(-100), x); /* NaN: outside, whatever the padding makes of that */
  if (o->pad == HN_GRID_REFLECTION) {
    const vm too_far = v_lt(v_set1(HN_TAPS_SIZE - 1), v_abs(x));
    *far = v_sel(too_far, one, *far);
    x = reflected(v_sel(too_far, v_zero(), x), a);
  } else {
    x = v_max_number(v_neg(most), v_min_number(most, x)); /* as far outside as all that lies beyond */
    /* Cubic weights keep the true place; its taps are moved to the border one by one. */
    if (o->pad == HN_GRID_BORDER && o->mode != HN_GRID_CUBIC)
      x = v_sel(v_lt(x, v_set1(a->lo)), v_zero(), v_sel(v_lt(v_set1(a->hi), x), v_sub(size, one), x));
  }
  if (o->mode == HN_GRID_NEAREST) {
    place[0] = tap_place(o, x, a), w[0] = one;
    return;
  }
  const vf base = v_floor(x), f = v_sub(x, base), e = v_sub(one, f);
  if (o->mode == HN_GRID_LINEAR) {
    place[0] = tap_place(o, base, a), place[1] = tap_place(o, v_add(base, one), a);
    w[0] = e, w[1] = HN_FAULT("taps_weight") ? e : f;
    return;
  }
  for (int32_t k = 0; k < HN_GRID_MOST; k++) place[k] = tap_place(o, v_add(base, v_set1((float)(k - 1))), a);
  cubic(f, w);
}

enum { PLACES = 64, BLOCK = 128 }; /* taps of a point; points whose coordinates are parted at once */

/* The tables of VEC_W points, or of n; coordinate[d] lies BLOCK apart. */
static inline void points_tables(int32_t *at, float *weight, size_t pitch, const float *coordinate, size_t n,
                                 const hn_grid *o, const axis *axes, size_t n_axes, size_t taps, vf *far) {
  vplace place[PLACES], one[HN_GRID_MOST];
  vf w[PLACES], by[HN_GRID_MOST];
  size_t all = taps;
  axis_taps(o, v_load(coordinate), &axes[0], place, w, far);
  for (size_t d = 1; d < n_axes; d++, all *= taps) {
    axis_taps(o, v_load(coordinate + d * BLOCK), &axes[d], one, by, far);
    for (size_t t = all; t-- > 0;) { /* from the last, so that nothing is overwritten that is still read */
      const vplace outer = place[t];
      const vf v = w[t];
      for (size_t k = taps; k-- > 0;)
        place[t * taps + k] = place_in(outer, (int32_t)axes[d].size, one[k]),
                         w[t * taps + k] = v_mul(v, by[k]);
    }
  }
  for (size_t t = 0; t < all; t++) place_put(at + t * pitch, place[t], n), put(weight + t * pitch, w[t], n);
}

static size_t places(int32_t *at, float *weight, size_t pitch, const float *g, size_t n, const hn_grid *o,
                     const int64_t *size, size_t n_axes) {
  const size_t taps = o->mode == HN_GRID_NEAREST ? 1 : o->mode == HN_GRID_LINEAR ? 2 : HN_GRID_MOST;
  float coordinate[HN_TAPS_AXES * BLOCK];
  axis axes[HN_TAPS_AXES];
  size_t left = 0;
  for (size_t d = 0; d < n_axes; d++) {
    const float all = (float)size[d], lo = o->align ? 0 : -0.5f, hi = o->align ? all - 1 : all - 0.5f;
    axes[d] = (axis){all, lo, hi, hi - lo};
  }
  memset(coordinate, 0, sizeof coordinate); /* lanes behind the last point are computed, too */
  for (size_t first = 0; first < n; first += BLOCK) {
    const size_t some = n - first < BLOCK ? n - first : BLOCK;
    for (size_t d = 0; d < n_axes; d++)
      for (size_t p = 0; p < some; p++) coordinate[d * BLOCK + p] = g[(first + p) * n_axes + n_axes - 1 - d];
    for (size_t p = 0; p < some; p += VEC_W) {
      const size_t lanes = some - p < VEC_W ? some - p : VEC_W;
      float is_far[VEC_W];
      vf far = v_zero();
      points_tables(at + first + p, weight + first + p, pitch, coordinate + p, lanes, o, axes, n_axes, taps,
                    &far);
      if (!v_any(v_ne(far, v_zero()))) continue;
      v_store(is_far, far);
      for (size_t i = 0; i < lanes; i++)
        if (is_far[i] > 0) at[first + p + i] = HN_TAPS_FAR, left++;
    }
  }
  return left;
}

static const struct hn_taps_ops table = {
    .plane = plane, .pixels = pixels, .largest = largest, .places = places};
