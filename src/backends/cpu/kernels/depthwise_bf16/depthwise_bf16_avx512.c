/* A load, a shift and a mask bring 32 channels of a pixel; every multiply-add is one of f32. */
#include <immintrin.h>
#include <stdbool.h>

#include "backends/cpu/kernels/depthwise_bf16/depthwise_bf16.h"
#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/template.h"

enum { PANEL = HN_DEPTHWISE_PANEL, PIXELS = 4, MAX_FIXED_TAPS = 5 };

/* In a register: the compiler would load or make it once for each use. */
#define KEEP(vector) __asm__("" : "+v"(vector))

typedef struct two {
  __m512 v[2]; /* channels 0 .. 15 and 16 .. 31 */
} two;

static inline __attribute__((always_inline)) two load_pairs(const uint16_t *p) {
  const __m512i x = _mm512_loadu_si512(p);
  two t = {{_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000u)))}};
  KEEP(t.v[0]);
  KEEP(t.v[1]);
  return t;
}

static inline two load_weights(const float *w) {
  return (two){{_mm512_loadu_ps(w), _mm512_loadu_ps(w + 16)}};
}

static inline two load_bias(const hn_depthwise_bf16_row *r) {
  if (!(r->flags & HN_EPI_BIAS) || HN_FAULT("depthwise_bf16_no_bias"))
    return (two){{_mm512_setzero_ps(), _mm512_setzero_ps()}};
  const uint32_t m = r->channels < PANEL ? (1u << r->channels) - 1u : ~0u;
  return (two){{_mm512_maskz_loadu_ps((__mmask16)m, r->bias),
                _mm512_maskz_loadu_ps((__mmask16)(m >> 16), r->bias + 16)}};
}

/* The way out of a pixel: nothing or a clamp, or a leaky-relu. */
typedef struct way {
  __m512 lo, hi, slope;
  bool leaky;
} way;

static inline way way_of(const hn_depthwise_bf16_row *r) {
  const bool clamp = r->flags & HN_EPI_CLAMP;
  return (way){_mm512_set1_ps(clamp ? r->lo : -__builtin_inff()),
               _mm512_set1_ps(clamp ? r->hi : __builtin_inff()), _mm512_set1_ps(r->slope),
               (r->flags & HN_EPI_LEAKY) != 0};
}

static inline __attribute__((always_inline)) void store_pixel(const way *o, two a, uint16_t *y) {
  HN_UNROLL for (int k = 0; k < 2; k++) {
    if (o->leaky)
      a.v[k] = _mm512_mask_mul_ps(a.v[k], _mm512_cmp_ps_mask(a.v[k], _mm512_setzero_ps(), _CMP_LT_OQ), a.v[k],
                                  o->slope);
    /* NaN passes: these return their second operand. */
    a.v[k] = _mm512_min_ps(o->hi, _mm512_max_ps(o->lo, a.v[k]));
  }
  _mm512_storeu_si512(y, (__m512i)_mm512_cvtne2ps_pbh(a.v[1], a.v[0]));
}

static inline uint32_t live_rows(const hn_depthwise_bf16_row *r) {
  return HN_FAULT("depthwise_bf16_last_row") && r->rows > 1 ? r->rows - 1 : r->rows;
}

/* Three taps beside each other: the weights stay in registers, the window slides over the row, every input is
 * read once. a[] holds the sums of the outputs that are not complete yet, the oldest first. */
static inline __attribute__((always_inline)) void slide(const hn_depthwise_bf16_row *r, const int rows,
                                                        const int stride) {
  two w[3][3], a[3];
  const two bias = load_bias(r);
  const way out = way_of(r);
  const uint16_t *q[3];
  uint16_t *y = r->y;
  HN_UNROLL for (int v = 0; v < rows; v++) {
    HN_UNROLL for (int u = 0; u < 3; u++) w[v][u] = load_weights(r->w + (v * 3 + u) * r->w_tap);
    q[v] = r->x[v];
  }
  const int behind = 3 - stride; /* columns that an output shares with the next one */
  HN_UNROLL for (int p = 0; p < 3; p++) a[p] = bias;
/* Column j of the window: output p of a[] meets it with tap j - p * stride. */
#define COLUMN(j)                                                                                            \
  HN_UNROLL for (int v = 0; v < rows; v++) {                                                                 \
    const two x = load_pairs(q[v]);                                                                          \
    HN_UNROLL for (int k = 0; k < 2; k++) HN_UNROLL for (int p = 0; p * stride <= j; p++) a[p].v[k] =        \
        _mm512_fmadd_ps(x.v[k], w[v][j - p * stride].v[k], a[p].v[k]);                                       \
    q[v] += PANEL;                                                                                           \
  }
  HN_UNROLL for (int j = 0; j < behind; j++) COLUMN(j) for (int64_t i = r->n; i > 0; i--, y += PANEL) {
    HN_UNROLL for (int j = behind; j < 3; j++) COLUMN(j) store_pixel(&out, a[0], y);
    HN_UNROLL for (int p = 0; p * stride < behind; p++) a[p] = a[p + 1];
    a[(behind + stride - 1) / stride] = bias;
  }
#undef COLUMN
}

/* P pixels from pixel `at` on, taps and stride constants, dilation 1: every input is read once and meets all
 * pixels that it belongs to. */
static inline __attribute__((always_inline)) void chunk_fixed(const hn_depthwise_bf16_row *r, const int P,
                                                              const int taps, const int stride, int64_t at) {
  two acc[PIXELS], w[MAX_FIXED_TAPS];
  const two bias = load_bias(r);
  const way out = way_of(r);
  const float *wp = r->w;
  const uint32_t rows = live_rows(r);
  HN_UNROLL for (int p = 0; p < P; p++) acc[p] = bias;
  for (uint32_t v = 0; v < rows; v++) {
    const uint16_t *q = r->x[v] + at * stride * PANEL;
    HN_UNROLL for (int u = 0; u < taps; u++, wp += r->w_tap) w[u] = load_weights(wp);
    HN_UNROLL for (int i = 0; i < (P - 1) * stride + taps; i++) {
      const two x = load_pairs(q + i * PANEL);
      HN_UNROLL for (int u = 0; u < taps; u++) {
        const int p = (i - u) / stride;
        if (i >= u && (i - u) % stride == 0 && p < P)
          HN_UNROLL for (int k = 0; k < 2; k++) acc[p].v[k] = _mm512_fmadd_ps(x.v[k], w[u].v[k], acc[p].v[k]);
      }
    }
  }
  HN_UNROLL for (int p = 0; p < P; p++) store_pixel(&out, acc[p], r->y + (at + p) * PANEL);
}

/* The same for any taps, stride and dilation. */
static inline __attribute__((always_inline)) void chunk(const hn_depthwise_bf16_row *r, const int P,
                                                        int64_t at) {
  two acc[PIXELS];
  const two bias = load_bias(r);
  const way out = way_of(r);
  const float *wp = r->w;
  const uint32_t rows = live_rows(r);
  const int64_t step = r->stride * PANEL;
  HN_UNROLL for (int p = 0; p < P; p++) acc[p] = bias;
  for (uint32_t v = 0; v < rows; v++) {
    const uint16_t *q = r->x[v] + at * step;
    for (uint32_t u = 0; u < r->taps; u++, q += r->dilation * PANEL, wp += r->w_tap) {
      const two w = load_weights(wp);
      HN_UNROLL for (int p = 0; p < P; p++) {
        const two x = load_pairs(q + p * step);
        HN_UNROLL for (int k = 0; k < 2; k++) acc[p].v[k] = _mm512_fmadd_ps(x.v[k], w.v[k], acc[p].v[k]);
      }
    }
  }
  HN_UNROLL for (int p = 0; p < P; p++) store_pixel(&out, acc[p], r->y + (at + p) * PANEL);
}

/* taps 0: any shape. */
static inline __attribute__((always_inline)) void chunks(const hn_depthwise_bf16_row *r, const int taps,
                                                         const int stride) {
  int64_t i = 0;
#define RUN(P)                                                                                               \
  if (taps)                                                                                                  \
    chunk_fixed(r, P, taps, stride, i);                                                                      \
  else                                                                                                       \
    chunk(r, P, i)
  for (; i + PIXELS <= r->n; i += PIXELS) RUN(PIXELS);
  for (; i < r->n; i++) RUN(1);
#undef RUN
}

static void row(const hn_depthwise_bf16_row *r) {
  const bool plain = r->dilation == 1 && (r->stride == 1 || r->stride == 2);
  const uint32_t rows = live_rows(r);
  const int shape = plain ? (int)(r->taps * 100 + rows * 10) + (int)r->stride : 0;
  switch (shape) {
  case 331: slide(r, 3, 1); return;
  case 332: slide(r, 3, 2); return;
  case 321: slide(r, 2, 1); return;
  case 322: slide(r, 2, 2); return;
  default: break;
  }
  if (plain && r->taps == 5 && r->stride == 1)
    chunks(r, 5, 1);
  else if (plain && r->taps == 5)
    chunks(r, 5, 2);
  else
    chunks(r, 0, 0);
}

static void pair(const uint16_t *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __mmask32 live = n < PANEL ? (1u << n) - 1u : ~0u;
  for (size_t i = 0; i < pixels; i++, x += pitch, to += PANEL)
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, _mm512_maskz_loadu_epi16(live, x)));
}

static const hn_depthwise_bf16_ops ops = {row, pair};
const struct hn_kernel hn_kernel_depthwise_bf16_avx512 = {"depthwise_bf16_avx512", "depthwise_bf16", "bf16",
                                                          HN_ISA_AVX512BF16, &ops};
