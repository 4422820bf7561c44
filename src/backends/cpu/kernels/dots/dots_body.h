/* The body of dots_f32_<tier>.c: sums of several pixels and outputs, one vector each, meet in one vector at
 * the end, in the order in which they lie in memory. */
#include <stdbool.h>

#include "backends/cpu/kernels/dots/dots.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

enum { TOGETHER = VEC_W < 8 ? VEC_W : 8 };

/* Addressed as three from one pointer: the compiler would make one each and spill them. */
#define GROUPS(n) (((n) + 2) / 3)
#define PIN(pointer) __asm__("" : "+r"(pointer))

/* One vector of channels of P pixels, `step` apart, times O filters, `filter` apart. */
static inline __attribute__((always_inline)) void products(vf *acc, const int P, const int O,
                                                           const float *const *x, ptrdiff_t step,
                                                           const float *const *w, ptrdiff_t filter,
                                                           size_t live) {
  vf weight[TOGETHER];
#define AT(p, i, distance) (p[(i) / 3] + (i) % 3 * distance)
#define LOAD(from) (live == VEC_W ? v_load(from) : v_loadn(from, live))
  HN_UNROLL for (int o = 0; o < O; o++) weight[o] = LOAD(AT(w, o, filter));
  HN_UNROLL for (int p = 0; p < P; p++) {
    const vf v = LOAD(AT(x, p, step));
    HN_UNROLL for (int o = 0; o < O; o++) v_fma_into(&acc[p * O + o], v, weight[o]);
  }
#undef LOAD
#undef AT
}

/* P pixels from ox on and O outputs from o0 on, taps [u0, u1), all inside the row. */
static inline __attribute__((always_inline)) void sums(const hn_dots_row *r, const int P, const int O,
                                                       int64_t ox, int64_t o0, int64_t u0, int64_t u1,
                                                       vf *acc) {
  const bool run = r->x_pixel == (int64_t)r->channels && r->dilation == 1; /* neighbouring taps are one run */
  const size_t length = run ? (size_t)(u1 - u0) * r->channels : r->channels;
  const ptrdiff_t step = r->x_pixel * r->stride, tap = r->x_pixel * r->dilation, filter = r->w_output;
  const ptrdiff_t at = (ox * r->stride - r->pad) * r->x_pixel + u0 * tap;
  const float *q[GROUPS(VEC_W)], *m[GROUPS(TOGETHER)];
  HN_UNROLL for (int j = 0; j < VEC_W; j++) acc[j] = v_zero();
  for (uint32_t v = 0; v < r->rows; v++) {
    const float *x = r->x[v] + at, *w = r->w[v] + o0 * filter + u0 * (ptrdiff_t)r->channels;
    for (int64_t u = run ? u1 - 1 : u0; u < u1; u++, x += tap, w += r->channels) {
      HN_UNROLL for (int g = 0; g < GROUPS(P); g++) q[g] = x + 3 * g * step;
      HN_UNROLL for (int g = 0; g < GROUPS(O); g++) m[g] = w + 3 * g * filter;
      size_t left = length;
      HN_ROLLED for (; left >= VEC_W; left -= VEC_W) {
        products(acc, P, O, q, step, m, filter, VEC_W);
        HN_UNROLL for (int g = 0; g < GROUPS(P); g++) {
          q[g] += VEC_W;
          PIN(q[g]);
        }
        HN_UNROLL for (int g = 0; g < GROUPS(O); g++) {
          m[g] += VEC_W;
          PIN(m[g]);
        }
      }
      if (left && !HN_FAULT("dots_channel_tail")) products(acc, P, O, q, step, m, filter, left);
    }
  }
}

static inline __attribute__((always_inline)) void block(const hn_dots_row *r, const int P, const int O,
                                                        int64_t ox, int64_t o0, int64_t u0, int64_t u1,
                                                        vf bias) {
  vf acc[VEC_W];
  sums(r, P, O, ox, o0, u0, u1, acc);
  vf s = v_add(v_sums(acc), bias);
  if (r->flags & HN_EPI_CLAMP)
    s = v_min_number(v_set1(r->hi), v_max_number(v_set1(r->lo), s));
  else if (r->flags & HN_EPI_LEAKY)
    s = v_sel(v_lt(s, v_zero()), v_mul(s, v_set1(r->slope)), s);
  float *y = r->y + ox * r->y_pixel + o0;
  if (r->y_pixel == O) {
    if (P * O == VEC_W)
      v_store(y, s);
    else
      v_storen(y, s, (size_t)(P * O));
    return;
  }
  float one[VEC_W];
  v_store(one, s);
  HN_UNROLL for (int p = 0; p < P; p++) HN_UNROLL for (int o = 0; o < O; o++) y[p * r->y_pixel + o] =
      one[p * O + o];
}

/* A pixel some of whose taps lie outside the row. */
static inline __attribute__((always_inline)) void edge(const hn_dots_row *r, const int O, int64_t ox,
                                                       int64_t o0, vf bias) {
  const int64_t first = ox * r->stride - r->pad;
  int64_t u0 = 0, u1 = r->taps;
  while (u0 < u1 && first + u0 * r->dilation < 0) u0++;
  while (u1 > u0 && first + (u1 - 1) * r->dilation >= r->width) u1--;
  block(r, 1, O, ox, o0, u0, u1, bias);
}

/* Output pixels whose taps all lie inside the row: [x0, x1). */
typedef struct interior {
  int64_t x0, x1;
} interior;

static interior interior_of(const hn_dots_row *r) {
  const int64_t reach = (r->taps - 1) * r->dilation, last = r->width - 1 - reach + r->pad;
  int64_t x0 = r->pad > 0 ? (r->pad + r->stride - 1) / r->stride : 0,
          x1 = last < 0 ? 0 : last / r->stride + 1;
  if (HN_FAULT("dots_edge") && x0 > 0) x0--;
  if (x0 > r->n) x0 = r->n;
  if (x1 > r->n) x1 = r->n;
  return (interior){x0, x1 < x0 ? x0 : x1};
}

/* All pixels of O outputs from o0 on. The last pixels are computed with some before them once more: single
 * pixels would wait for their own sums. */
static inline __attribute__((always_inline)) void outputs(const hn_dots_row *r, const int O, int64_t o0,
                                                          interior in) {
  enum { BIAS = VEC_W };
  const int P = VEC_W / O;
  float pattern[BIAS] = {0};
  if ((r->flags & HN_EPI_BIAS) && !HN_FAULT("dots_no_bias"))
    for (int j = 0; j < P * O; j++) pattern[j] = r->bias[o0 + j % O];
  const vf bias = v_load(pattern);
  for (int64_t ox = 0; ox < in.x0; ox++) edge(r, O, ox, o0, bias);
  int64_t ox = in.x0;
  for (; ox + P <= in.x1; ox += P) block(r, P, O, ox, o0, 0, r->taps, bias);
  if (ox < in.x1 && in.x1 - in.x0 >= P)
    block(r, P, O, in.x1 - P, o0, 0, r->taps, bias);
  else
    for (; ox < in.x1; ox++) block(r, 1, O, ox, o0, 0, r->taps, bias);
  for (ox = in.x1; ox < r->n; ox++) edge(r, O, ox, o0, bias);
}

#define FOR_OUTPUTS(n)                                                                                       \
  static __attribute__((noinline)) void outputs_##n(const hn_dots_row *r, int64_t o0, interior in) {         \
    outputs(r, n, o0, in);                                                                                   \
  }
#if VEC_W == 1
#define COUNTS(X) X(1)
#else
#define COUNTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#endif
COUNTS(FOR_OUTPUTS)

static void row(const hn_dots_row *r) {
#define ENTRY(n) outputs_##n,
  static void (*const table[TOGETHER])(const hn_dots_row *, int64_t, interior) = {COUNTS(ENTRY)};
#undef ENTRY
  const interior in = interior_of(r);
  for (int64_t o = 0; o < r->outputs; o += TOGETHER) {
    const int64_t left = r->outputs - o;
    table[(left < TOGETHER ? left : TOGETHER) - 1](r, o, in);
  }
}

static const hn_dots_ops ops = {VEC_W, TOGETHER, row};
