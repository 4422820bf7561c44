#include "backends/cuda/quantized/sum_constants.h"

#include <math.h>

enum { CODES = 256, KILLERS = 32 };

typedef struct range {
  int low, high;
} range;

static range range_of(hone_dtype t) { return t == HONE_DTYPE_I8 ? (range){-128, 127} : (range){0, 255}; }

static int saturate(float x, range r) {
  return x < (float)r.low ? r.low : x > (float)r.high ? r.high : (int)x;
}

/* The results of one code b with all codes a. */
typedef short row[CODES];

typedef struct search {
  const hn_codes_sum *s;
  range a, b, y;
  row defined[CODES];
  int killer[KILLERS], killers; /* rows on which constants failed: others are likely to fail there */
} search;

static void define_row(search *q, int b) {
  const hn_codes_sum *s = q->s;
  const float y = ((float)(q->b.low + b) - s->b_zero) * s->b_scale;
  for (int a = 0; a < CODES; a++) {
    const float x = ((float)(q->a.low + a) - s->a_zero) * s->a_scale, sum = x + y;
    q->defined[b][a] = (short)saturate(rintf(sum / s->y_scale) + s->y_zero, q->y);
  }
}

static bool same_row(const search *q, const hn_codes_short *c, int b) {
  const float rounder = 0x1.8p23f, base = fmaf((float)b, c->kb, c->c);
  for (int a = 0; a < CODES; a++) {
    const float t = fmaf((float)(q->a.low + a) - q->s->a_zero, c->ka, base);
    if (saturate((t + rounder) - rounder, q->y) != q->defined[b][a]) return false;
  }
  return true;
}

static bool same(search *q, const hn_codes_short *c) {
  for (int i = 0; i < q->killers; i++)
    if (!same_row(q, c, q->killer[i])) return false;
  for (int b = 0; b < CODES; b++)
    if (!same_row(q, c, b)) {
      if (q->killers < KILLERS) q->killer[q->killers++] = b;
      return false;
    }
  return true;
}

static float ulps(float x, int n) {
  for (; n > 0; n--) x = nextafterf(x, INFINITY);
  for (; n < 0; n++) x = nextafterf(x, -INFINITY);
  return x;
}

/* Next to the constants that follow from the scales. */
static bool find(search *q, hn_codes_short *c) {
  static const int nearest[] = {0, 1, -1}, further[] = {0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8};
  const hn_codes_sum *s = q->s;
  const double ka = (double)s->a_scale / (double)s->y_scale, kb = (double)s->b_scale / (double)s->y_scale,
               k = (double)s->y_zero - ((double)s->b_zero - q->b.low) * kb;
  for (size_t i = 0; i < sizeof further / sizeof *further; i++)
    for (size_t j = 0; j < 9; j++) {
      c->ka = ulps((float)ka, nearest[j % 3]), c->kb = ulps((float)kb, nearest[j / 3]);
      c->c = ulps((float)k, further[i]);
      if (same(q, c)) return true;
    }
  return false;
}

hn_codes_short hn_codes_sum_constants(const hn_codes_sum *s, hone_dtype a, hone_dtype b, hone_dtype y) {
  search q = {.s = s, .a = range_of(a), .b = range_of(b), .y = range_of(y)};
  hn_codes_short c = {0};
  for (int i = 0; i < CODES; i++) define_row(&q, i);
  c.holds = find(&q, &c);
  return c;
}
