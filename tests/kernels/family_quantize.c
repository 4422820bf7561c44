/* Adapter of the quantisation kernels: integers must be exact; a dequantised value carries one
 * rounding, that of the product (the difference of two small integers is exact). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/quantize/quantize.h"
#include "check.h"

static int code_of(float x, float scale, float zero, bool is_signed, bool times) {
  const float q = rintf(times ? x * scale : x / scale) + zero, lo = is_signed ? -128 : 0,
              hi = is_signed ? 127 : 255;
  return !(q > lo) ? (int)lo : q > hi ? (int)hi : (int)q;
}

static void check_case(ck *c, const struct hn_quantize_ops *ops, size_t n, enum ck_fill fill, bool vectors,
                       bool is_signed) {
  const size_t params = vectors ? n : 1, words = (n + 3) / 4;
  float *x = ck_alloc(c, n, n % 3), *scale = ck_alloc(c, params, 1), *zero = ck_alloc(c, params, 0),
        *y = ck_alloc(c, n, n % 2);
  /* The end lies at the guard page. */
  unsigned char *q = (unsigned char *)(ck_alloc(c, words, 0) + words) - n;
  ck_fill(c, x, n, fill);
  for (size_t i = 0; i < params; i++) {
    scale[i] = 0.001f * (float)(1 + ck_random(c) % 40);
    zero[i] = (float)(ck_random(c) % 256) - (is_signed ? 128.0f : 0.0f);
  }
  if (n > 2 && fill == CK_RANDOM) x[1] = 2.5f * scale[vectors ? 1 : 0]; /* a tie, as far as f32 has it */
  ck_case(c, "n=%zu fill=%s vectors=%d signed=%d", n, ck_fill_name(fill), vectors, is_signed);
  for (int times = 1; times >= 0; times--) {
    (times ? ops->requantize : ops->quantize)(q, x, n, scale, zero, vectors, is_signed);
    for (size_t i = 0; i < n; i++)
      ck_same(c, i, is_signed ? (float)((int8_t *)q)[i] : (float)q[i],
              (float)code_of(x[i], scale[vectors ? i : 0], zero[vectors ? i : 0], is_signed, times));
  }
  ops->dequantize(y, q, n, scale, zero, vectors, is_signed);
  for (size_t i = 0; i < n; i++) {
    const double code = is_signed ? (double)((int8_t *)q)[i] : (double)q[i];
    const double want = (code - (double)zero[vectors ? i : 0]) * (double)scale[vectors ? i : 0];
    ck_near(c, i, y[i], want, CK_EPS * fabs(want));
  }
  ck_release_all(c);
}

/* Quotients in the middle between two integers and next to it, where x / scale and x times 1 / scale part. */
static void check_ties(ck *c, const struct hn_quantize_ops *ops, float scale) {
  enum { N = 3 * 1600 };
  const float zero = 100;
  float *x = ck_alloc(c, N, 0);
  unsigned char *q = (unsigned char *)ck_alloc(c, N / 4, 0);
  for (int i = 0; i < N; i++) {
    const float middle = ((float)(i / 3 % 400 - 200) + 0.5f) * scale;
    x[i] = i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? -INFINITY : INFINITY);
  }
  ck_case(c, "ties scale=%g", (double)scale);
  ops->quantize(q, x, N, &scale, &zero, false, false);
  for (size_t i = 0; i < N; i++) ck_same(c, i, (float)q[i], (float)code_of(x[i], scale, zero, false, false));
  ck_release_all(c);
}

enum { PAIRS = 256 * 256 };

/* Random pairs of codes, or all of them. Scales that are multiples of each other make many quotients lie in
 * the middle between two integers, or almost. */
static void check_add(ck *c, const struct hn_quantize_ops *ops, size_t n, int form) {
  hn_quantize_add p = {.a_scale = form & 8 ? 0.15f : 0.0213f,
                       .a_zero = form & 1 ? -7 : 113,
                       .b_scale = form & 8 ? 0.45f : 0.0371f,
                       .b_zero = form & 2 ? 12 : 3,
                       .y_scale = form & 8 ? 0.3f : 0.0449f,
                       .y_zero = form & 4 ? -20 : 90,
                       .a_signed = form & 1,
                       .b_signed = form & 2,
                       .y_signed = form & 4};
  const size_t words = (n + 3) / 4;
  unsigned char *a = (unsigned char *)(ck_alloc(c, words, 0) + words) - n,
                *b = (unsigned char *)(ck_alloc(c, words, 0) + words) - n,
                *y = (unsigned char *)(ck_alloc(c, words, 0) + words) - n;
  for (size_t i = 0; i < n; i++) {
    a[i] = n < PAIRS ? (unsigned char)ck_random(c) : (unsigned char)i;
    b[i] = n < PAIRS ? (unsigned char)ck_random(c) : (unsigned char)(i >> 8);
  }
  ck_case(c, "add n=%zu form=%d", n, form);
  ops->prepare_add(&p);
  ops->add(y, a, b, n, &p);
  for (size_t i = 0; i < n; i++) {
    const float x = ((p.a_signed ? (float)(int8_t)a[i] : (float)a[i]) - p.a_zero) * p.a_scale,
                z = ((p.b_signed ? (float)(int8_t)b[i] : (float)b[i]) - p.b_zero) * p.b_scale;
    ck_same(c, i, p.y_signed ? (float)(int8_t)y[i] : (float)y[i],
            (float)code_of(x + z, p.y_scale, p.y_zero, p.y_signed, false));
  }
  ck_release_all(c);
}

/* 0.15 x 0.1 is a twentieth of 0.3: many products would lie in the middle between two integers, but the
 * decimals are not exact as floats, so that the order of the factors decides to which side they round. (With
 * powers of two every order gives the same.) */
static void check_mul(ck *c, const struct hn_quantize_ops *ops, size_t n, size_t period, int form) {
  const hn_quantize_mul p = {.a_scale = form & 4 ? 0.15f : 0.0213f,
                             .a_zero = form & 1 ? -7 : 113,
                             .y_scale = form & 4 ? 0.3f : 0.0449f,
                             .y_zero = form & 2 ? -20 : 90,
                             .a_signed = form & 1,
                             .y_signed = form & 2};
  const size_t words = (n + 3) / 4;
  unsigned char *a = (unsigned char *)(ck_alloc(c, words, 0) + words) - n,
                *y = (unsigned char *)(ck_alloc(c, words, 0) + words) - n;
  float *b = ck_alloc(c, period, 0), *k = ck_alloc(c, period, 0);
  for (size_t i = 0; i < n; i++) a[i] = (unsigned char)ck_random(c);
  for (size_t i = 0; i < period; i++) {
    b[i] = ((float)(ck_random(c) % 256) - 30) * (form & 4 ? 0.1f : 0.0371f);
    k[i] = p.a_scale * b[i] / p.y_scale;
  }
  ck_case(c, "mul n=%zu period=%zu form=%d", n, period, form);
  ops->mul(y, a, n, b, k, period, &p);
  for (size_t i = 0; i < n; i++) {
    const float x = ((p.a_signed ? (float)(int8_t)a[i] : (float)a[i]) - p.a_zero) * p.a_scale;
    ck_same(c, i, p.y_signed ? (float)(int8_t)y[i] : (float)y[i],
            (float)code_of(x * b[i % period], p.y_scale, p.y_zero, p.y_signed, false));
  }
  ck_release_all(c);
}

static float code_16(const uint16_t *q, size_t i, bool is_signed) {
  return is_signed ? (float)((const int16_t *)q)[i] : (float)q[i];
}

static void check_wide(ck *c, const struct hn_quantize_ops *ops, size_t n, enum ck_fill fill, bool vectors,
                       bool is_signed) {
  const size_t params = vectors ? n : 1, words = (n + 1) / 2;
  float *x = ck_alloc(c, n, n % 3), *scale = ck_alloc(c, params, 1), *zero = ck_alloc(c, params, 0),
        *y = ck_alloc(c, n, n % 2);
  uint16_t *q = (uint16_t *)(ck_alloc(c, words, 0) + words) - n;
  ck_fill(c, x, n, fill);
  for (size_t i = 0; i < params; i++) {
    scale[i] = 0.00001f * (float)(1 + ck_random(c) % 40);
    zero[i] = (float)(ck_random(c) % 65536) - (is_signed ? 32768.0f : 0.0f);
  }
  ck_case(c, "16 bits n=%zu fill=%s vectors=%d signed=%d", n, ck_fill_name(fill), vectors, is_signed);
  ops->quantize_wide(q, x, n, scale, zero, vectors, is_signed);
  const float lo = is_signed ? -32768 : 0, hi = is_signed ? 32767 : 65535;
  for (size_t i = 0; i < n; i++) {
    const float r = rintf(x[i] / scale[vectors ? i : 0]) + zero[vectors ? i : 0];
    ck_same(c, i, code_16(q, i, is_signed), !(r > lo) ? lo : r > hi ? hi : r);
  }
  ops->dequantize_wide(y, q, n, scale, zero, vectors, is_signed);
  for (size_t i = 0; i < n; i++) {
    const double want =
        ((double)code_16(q, i, is_signed) - (double)zero[vectors ? i : 0]) * (double)scale[vectors ? i : 0];
    ck_near(c, i, y[i], want, CK_EPS * fabs(want));
  }
  ck_release_all(c);
}

/* Quotients next to the middle between two integers among them: the same numbers as a division gives. */
static void check_grid(ck *c, const struct hn_quantize_ops *ops, size_t n, enum ck_fill fill, bool least) {
  const hn_quantize_grid g = {
      .scale = 1e-5f * (float)(1 + ck_random(c) % 4000), .lo = -300, .hi = 65235, .least = least};
  float *x = ck_alloc(c, n, n % 3), *y = ck_alloc(c, n, n % 2);
  ck_fill(c, x, n, fill);
  for (size_t i = 0; i < n; i += 3) {
    const float middle = ((float)(ck_random(c) % 66000) - 399.5f) * g.scale;
    x[i] = i % 2 ? nextafterf(middle, i % 4 == 1 ? -INFINITY : INFINITY) : middle;
  }
  ck_case(c, "grid n=%zu fill=%s least=%d", n, ck_fill_name(fill), least);
  ops->grid(y, x, n, &g);
  for (size_t i = 0; i < n; i++) {
    const float r = rintf(x[i] / g.scale), up = r > g.lo || (!least && isnan(r)) ? r : g.lo;
    ck_same(c, i, y[i], (up > g.hi ? g.hi : up) * g.scale);
  }
  ck_release_all(c);
}

/* Codes of 16 bits as two of 8, and sums of both halves as one number: exact, then rounded twice. */
static void check_halves(ck *c, const struct hn_quantize_ops *ops, size_t n) {
  const size_t words = (n + 1) / 2, bytes = (n + 3) / 4;
  uint16_t *q = (uint16_t *)(ck_alloc(c, words, 0) + words) - n;
  uint8_t *high = (uint8_t *)(ck_alloc(c, bytes, 0) + bytes) - n,
          *low = (uint8_t *)(ck_alloc(c, bytes, 0) + bytes) - n;
  int32_t *a = (int32_t *)(void *)ck_alloc(c, n, 0), *b = (int32_t *)(void *)ck_alloc(c, n, 1);
  float *scale = ck_alloc(c, n, 0), *y = ck_alloc(c, n, 2);
  for (size_t i = 0; i < n; i++) {
    q[i] = (uint16_t)ck_random(c);
    a[i] = (int32_t)ck_random(c), b[i] = (int32_t)ck_random(c);
    if (i % 3 == 0) b[i] = (int32_t)(0u - 256 * (uint32_t)(a[i] /= 256)) + (int32_t)(i % 7); /* cancel */
    scale[i] = 1e-5f * (float)(1 + ck_random(c) % 1000);
  }
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    ck_case(c, "halves n=%zu signed=%d", n, is_signed);
    ops->split(high, low, q, n, is_signed);
    for (size_t i = 0; i < n; i++)
      ck_same(c, i, (float)(256 * high[i] + low[i]), (float)(q[i] ^ (is_signed ? 0x8000 : 0)));
  }
  ops->join(y, a, b, n, scale);
  for (size_t i = 0; i < n; i++) ck_same(c, i, y[i], (float)(256 * (int64_t)a[i] + b[i]) * scale[i]);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const struct {
    size_t n, period;
  } products[] = {{0, 1},    {1, 1},    {15, 3},     {16, 16},    {17, 64},
                  {640, 64}, {700, 96}, {5000, 320}, {65536, 512}};
  for (size_t l = 0; l < sizeof products / sizeof *products; l++)
    for (int form = 0; form < 8; form++) check_mul(c, k->ops, products[l].n, products[l].period, form);
  static const size_t sums[] = {0, 1, 15, 16, 17, 63, 64, 100, PAIRS};
  for (size_t l = 0; l < sizeof sums / sizeof *sums; l++)
    for (int form = 0; form < 16; form++) check_add(c, k->ops, sums[l], form);
  static const float scales[] = {0.1f, 0.013f, 1 / 255.0f, 3e-7f, 1e-33f, 1e33f, 0x1p-3f};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) check_ties(c, k->ops, scales[i]);
  static const size_t lengths[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 61, 257};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (int form = 0; form < 4; form++) {
        check_case(c, k->ops, lengths[l], fill, form & 1, form >> 1);
        check_wide(c, k->ops, lengths[l], fill, form & 1, form >> 1);
        check_grid(c, k->ops, lengths[l], fill, form & 1);
      }
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) check_halves(c, k->ops, lengths[l]);
}

struct job {
  const struct hn_quantize_ops *ops;
  float *x;
  unsigned char *q;
  bool back;
};
static void run_job(void *arg) {
  static const float scale = 0.02f, zero = 3;
  struct job *j = arg;
  if (j->back)
    j->ops->dequantize(j->x, j->q, 4096, &scale, &zero, false, false);
  else
    j->ops->quantize(j->q, j->x, 4096, &scale, &zero, false, false);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("quantize", "f32_8", HN_ISA_SCALAR);
  struct job j = {NULL, ck_alloc(c, 4096, 0), (unsigned char *)ck_alloc(c, 1024, 0), false};
  ck_fill(c, j.x, 4096, CK_RANDOM);
  for (int back = 0; back < 2; back++) {
    j.back = back, j.ops = k->ops;
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    /* round, clamp, add, pack; or widen, convert, scale */
    const ck_work work = {.instructions = (back ? 3 : 5) * 4096.0,
                          .read = (back ? 1 : 4) * 4096.0,
                          .written = (back ? 4 : 1) * 4096.0};
    ck_bench_line(c, back ? "dequantize 4096" : "quantize 4096", t, &work, ts);
  }
}

const ck_family ck_family_quantize = {"quantize", check, bench};
