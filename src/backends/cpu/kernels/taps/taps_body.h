/* The body of taps_f32_<tier>.c. */
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

static inline void plane_points(float *y, const float *x, const hn_taps *s, size_t p, size_t n) {
  vf sum = some(s->base + p, n);
  for (size_t t = HN_FAULT("taps_first") && s->taps > 1 ? 1 : 0; t < s->taps; t++) {
    const size_t i = t * s->pitch + p;
    sum = v_fma(some(s->weight + i, n), pick(x, s->at + i, n), sum);
  }
  put(y + p, sum, n);
}

static void plane(float *y, const float *x, const hn_taps *s) {
  size_t p = 0;
  for (; p + VEC_W <= s->points; p += VEC_W) plane_points(y, x, s, p, VEC_W);
  if (p < s->points) plane_points(y, x, s, p, s->points - p);
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

/* Plain C: compilers make vectors of it. size, less, half: the coordinate is ((g + 1) * size - less) * half.
 */
static size_t corners(int32_t *restrict at, float *restrict weight, size_t pitch, const float *restrict g,
                      size_t n, int32_t height, int32_t width, bool align) {
  const float right = (float)(width - 1), low = (float)(height - 1), half = align ? 1.0f : 0.5f,
              first = align ? 0.5f : 1.0f, w = align ? right : (float)width, h = align ? low : (float)height,
              less = align ? 0.0f : 1.0f;
  int32_t *restrict at1 = at + pitch, *restrict at2 = at + 2 * pitch, *restrict at3 = at + 3 * pitch;
  float *restrict w1 = weight + pitch, *restrict w2 = weight + 2 * pitch, *restrict w3 = weight + 3 * pitch;
  int32_t outside = 0;
  for (size_t p = 0; p < n; p++) {
    const float x = ((g[2 * p] + 1.0f) * first * w - less) * half,
                y = ((g[2 * p + 1] + 1.0f) * first * h - less) * half;
    const int32_t inside = (x >= 0.0f) & (x < right) & (y >= 0.0f) & (y < low);
    const float u = inside ? x : 0.0f, v = inside ? y : 0.0f;
    const int32_t left = (int32_t)u, top = (int32_t)v, corner = top * width + left;
    const float dx = u - (float)left, dy = v - (float)top;
    at[p] = inside ? corner : -1;
    at1[p] = corner + 1, at2[p] = corner + width, at3[p] = corner + width + 1;
    weight[p] = (1.0f - dy) * (1.0f - dx), w1[p] = (1.0f - dy) * dx;
    w2[p] = dy * (1.0f - dx), w3[p] = HN_FAULT("taps_corner") ? dy : dy * dx;
    outside += 1 - inside;
  }
  return (size_t)outside;
}

static const struct hn_taps_ops table = {.plane = plane, .pixels = pixels, .corners = corners};
