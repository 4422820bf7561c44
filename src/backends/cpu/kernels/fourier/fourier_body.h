/* The body of fourier_f32_<tier>.c: Stockham's passes. One takes vectors of [blocks][p][length] and gives
 * [p][blocks][length]; `blocks` is the product of the factors before, and what leaves it is in order at the
 * end. A turn is one number for all lanes. */
#include "backends/cpu/kernels/fourier/fourier.h"

#include "base/fault.h"

enum { W = HN_FOURIER_LANES };
typedef float vw __attribute__((vector_size(W * sizeof(float)), may_alias));

/* A point: its real and its imaginary part. */
typedef struct __attribute__((may_alias)) point {
  vw re, im;
} point;

/* By pointers and macros: how vectors of this size are handed over depends on the tier. */
#define PLUS(a, b) ((point){(a).re + (b).re, (a).im + (b).im})
#define MINUS(a, b) ((point){(a).re - (b).re, (a).im - (b).im})

static inline const point *get(const float *x, size_t i) {
  return (const point *)(const void *)(x + 2 * W * i);
}
static inline void put(float *x, size_t i, const point *p) { *(point *)(void *)(x + 2 * W * i) = *p; }
/* Turned by turn `i` of the table. */
static inline void put_turned(const hn_fourier_lines *f, size_t turn, float *x, size_t i, const point *a) {
  const float c = f->cosine[turn], s = HN_FAULT("fourier_turn") ? -f->sine[turn] : f->sine[turn];
  put(x, i, &(point){a->re * c - a->im * s, a->re * s + a->im * c});
}

static void pass_two(const hn_fourier_lines *f, const float *x, float *y, size_t blocks, size_t length) {
  const size_t step = blocks * length;
  for (size_t k = 0; k < blocks; k++)
    for (size_t i = 0; i < length; i++) {
      const point *a = get(x, 2 * k * length + i), *b = get(x, (2 * k + 1) * length + i);
      put(y, k * length + i, &PLUS(*a, *b));
      put_turned(f, blocks * i, y, k * length + i + step, &MINUS(*a, *b));
    }
}

static void pass_four(const hn_fourier_lines *f, const float *x, float *y, size_t blocks, size_t length) {
  const size_t step = blocks * length;
  /* -i or i: the sign of a quarter turn. */
  const float quarter = f->sine[f->n / 4];
  for (size_t k = 0; k < blocks; k++)
    for (size_t i = 0; i < length; i++) {
      const float *from = x + 2 * W * (4 * k * length + i);
      const point *a = get(from, 0), *b = get(from, length), *c = get(from, 2 * length),
                  *d = get(from, 3 * length);
      const point s = PLUS(*a, *c), t = PLUS(*b, *d), u = MINUS(*a, *c), v = MINUS(*b, *d),
                  w = {-v.im * quarter, v.re * quarter};
      put(y, k * length + i, &PLUS(s, t));
      put_turned(f, blocks * i, y, k * length + i + step, &PLUS(u, w));
      put_turned(f, 2 * blocks * i, y, k * length + i + 2 * step, &MINUS(s, t));
      put_turned(f, 3 * blocks * i, y, k * length + i + 3 * step, &MINUS(u, w));
    }
}

/* p odd: points q and p - q share their sums. */
static void pass_odd(const hn_fourier_lines *f, const float *x, float *y, size_t p, size_t blocks,
                     size_t length, float *folded) {
  const size_t step = blocks * length, half = (p - 1) / 2, turn = f->n / p;
  for (size_t k = 0; k < blocks; k++)
    for (size_t i = 0; i < length; i++) {
      const float *from = x + 2 * W * (p * k * length + i);
      const point first = *get(from, 0);
      point all = first;
      for (size_t j = 1; j <= half; j++) {
        const point *a = get(from, j * length), *b = get(from, (p - j) * length);
        put(folded, 2 * j - 2, &PLUS(*a, *b));
        put(folded, 2 * j - 1, &MINUS(*a, *b));
        all = PLUS(all, *get(folded, 2 * j - 2));
      }
      put(y, k * length + i, &all);
      for (size_t q = 1; q <= half; q++) {
        point even = first, odd = {all.re * 0, all.im * 0};
        for (size_t j = 1, w = q; j <= half; j++) {
          const float c = f->cosine[w * turn], s = f->sine[w * turn];
          const point *a = get(folded, 2 * j - 2), *b = get(folded, 2 * j - 1);
          even.re += c * a->re, even.im += c * a->im;
          odd.re -= s * b->im, odd.im += s * b->re;
          w += q;
          if (w >= p) w -= p;
        }
        put_turned(f, q * blocks * i, y, k * length + i + q * step, &PLUS(even, odd));
        put_turned(f, (p - q) * blocks * i, y, k * length + i + (p - q) * step, &MINUS(even, odd));
      }
    }
}

static float *run(const hn_fourier_lines *f, float *x, float *y, float *folded) {
  for (size_t pass = 0, blocks = 1; pass < f->passes; pass++) {
    const size_t p = f->factor[pass], length = f->n / (blocks * p);
    if (p == 2)
      pass_two(f, x, y, blocks, length);
    else if (p == 4)
      pass_four(f, x, y, blocks, length);
    else
      pass_odd(f, x, y, p, blocks, length, folded);
    float *swap = x;
    x = y, y = swap;
    blocks *= p;
  }
  if (f->scale != 1.0f)
    for (size_t i = 0; i < f->n; i++) {
      const point *a = get(x, i);
      put(x, i, &(point){a->re * f->scale, a->im * f->scale});
    }
  return x;
}

static const struct hn_fourier_ops table = {run};
