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

/* HN_CODES_SHORT */
static bool same_row(const search *q, const hn_codes_short *c, int b) {
  const float rounder = 0x1.8p23f, base = fmaf((float)b, c->kb, c->c);
  for (int a = 0; a < CODES; a++) {
    const float t = fmaf((float)(q->a.low + a) - q->s->a_zero, c->ka, base);
    if (saturate((t + rounder) - rounder, q->y) != q->defined[b][a]) return false;
  }
  return true;
}

static float within(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* HN_CODES_PARTS: a from one below its lowest code to one above its highest. */
static bool same_parts_row(const search *q, const hn_codes_short *c, int b) {
  const float base = fmaf(32768 + (float)b, c->kb, c->c);
  for (int a = -1; a <= CODES; a++) {
    const float rounded = (float)(q->a.low + a) - q->s->a_zero + c->rounder;
    const float u = within(fmaf(rounded, HN_CODES_PART, c->base));
    const int code = (int)(fmaf(within(fmaf(u, c->ka, base)), 255, 0x1p23f) - 0x1p23f);
    if (code + q->y.low != q->defined[b][a < 0 ? 0 : a < CODES ? a : CODES - 1]) return false;
  }
  return true;
}

static bool same(search *q, const hn_codes_short *c) {
  bool (*const row_is)(const search *, const hn_codes_short *, int) =
      c->way == HN_CODES_PARTS ? same_parts_row : same_row;
  for (int i = 0; i < q->killers; i++)
    if (!row_is(q, c, q->killer[i])) return false;
  for (int b = 0; b < CODES; b++)
    if (!row_is(q, c, b)) {
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
static bool find_short(search *q, hn_codes_short *c) {
  static const int nearest[] = {0, 1, -1}, further[] = {0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8};
  const hn_codes_sum *s = q->s;
  const double ka = (double)s->a_scale / (double)s->y_scale, kb = (double)s->b_scale / (double)s->y_scale,
               k = (double)s->y_zero - ((double)s->b_zero - q->b.low) * kb;
  c->way = HN_CODES_SHORT, q->killers = 0;
  for (size_t i = 0; i < sizeof further / sizeof *further; i++)
    for (size_t j = 0; j < 9; j++) {
      c->ka = ulps((float)ka, nearest[j % 3]), c->kb = ulps((float)kb, nearest[j / 3]);
      c->c = ulps((float)k, further[i]);
      if (same(q, c)) return true;
    }
  return false;
}

/* What may be added to u ka + (b + 32768) kb, such that all pairs come to their codes: between the two. */
static void offsets(const search *q, const hn_codes_short *c, double *least, double *most) {
  *least = -INFINITY, *most = INFINITY;
  for (int b = 0; b < CODES; b++)
    for (int a = 0; a < CODES; a++) {
      const int code = q->defined[b][a] - q->y.low;
      const double y = a * (double)HN_CODES_PART * (double)c->ka + (b + 32768.0) * (double)c->kb;
      if (code > 0) *least = fmax(*least, (code - 0.5) / 255 - y);
      if (code < 255) *most = fmin(*most, (code + 0.5) / 255 - y);
    }
}

/* Numbers that round what is added to them, and a base for each, a multiple of 2^-8: the pair with which the
 * part of the lowest code `low` is next to `wanted`. Even numbers keep ties to even. */
static void find_base(hn_codes_short *c, double low, double wanted) {
  double next = INFINITY;
  for (int i = 0; i < 1 << 16; i++) {
    const double rounder = 12582912 + 2 * i, part = (rounder + low) * (double)HN_CODES_PART,
                 base = rint((wanted - part) * 256) / 256;
    if (fabs(part + base - wanted) >= next) continue;
    next = fabs(part + base - wanted);
    c->rounder = (float)rounder, c->base = (float)base;
  }
}

/* The offset between the two bounds: c, and, where that is too coarse, `base`. */
static bool find_offset(search *q, hn_codes_short *c) {
  static const double between[] = {0.5, 0.3, 0.7, 0.1, 0.9};
  double least, most;
  offsets(q, c, &least, &most);
  if (!(least < most) || !isfinite(least) || !isfinite(most)) return false;
  for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
    const double offset = least + between[i] * (most - least);
    c->c = (float)offset;
    find_base(c, (double)q->a.low - (double)q->s->a_zero, (offset - (double)c->c) / (double)c->ka);
    if (same(q, c)) return true;
  }
  return false;
}

static bool find_parts(search *q, hn_codes_short *c) {
  static const int nearest[] = {0, 1, -1};
  const hn_codes_sum *s = q->s;
  const double ka = (double)s->a_scale / (double)s->y_scale / 255 / (double)HN_CODES_PART,
               kb = (double)s->b_scale / (double)s->y_scale / 255;
  c->way = HN_CODES_PARTS, q->killers = 0;
  for (size_t i = 0; i < 9; i++) {
    c->ka = ulps((float)ka, nearest[i % 3]), c->kb = ulps((float)kb, nearest[i / 3]);
    if (find_offset(q, c)) return true;
  }
  return false;
}

hn_codes_short hn_codes_sum_constants(const hn_codes_sum *s, hone_dtype a, hone_dtype b, hone_dtype y,
                                      bool parts) {
  search q = {.s = s, .a = range_of(a), .b = range_of(b), .y = range_of(y)};
  hn_codes_short c = {.many = 32768};
  for (int i = 0; i < CODES; i++) define_row(&q, i);
  if (!(parts && find_parts(&q, &c)) && !find_short(&q, &c)) c.way = HN_CODES_LONG;
  return c;
}
