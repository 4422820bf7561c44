/* Family "gemm_bf16": splitting, packing, the tile kernel over all tile sizes, the way out, and the whole
 * through the convolution driver, with operands of one, two and three bf16 parts, and in f16. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/kernels/features.h"
#include "base/half.h"
#include "check.h"
#include "conv_cases.h"
#include "gemm_oracle.h"

/* Largest error of a sum of k products; sum, mag_a, mag_b: sums of |a b|, |a|, |b|.  u = 2^-8: what
 * one, two and three parts leave out of both factors (gemm_bf16.h).  Products and sums are rounded to f32, of
 * several parts as many times more; parts and results below 2^-126 count as 0. */
static double bound_of(uint32_t parts, size_t k, double sum, double mag_a, double mag_b) {
  const double u = 0x1p-8, products = hn_bf16_products(parts);
  const double rounding = parts == 3   ? 2 * u * u * u * (1 + 2 * u)
                          : parts == 2 ? 3 * u * u * (1 + 2 * u)
                                       : 2 * u + u * u;
  const double tiny = 0x1p-126 * (2 * products * (double)k + 4 + mag_a + mag_b);
  return sum * rounding + (2 * products * (double)k + 8) * CK_EPS * sum * (1 + 1e-3) + tiny;
}

/* The same in f16, u = 2^-11: both factors are rounded, and sums of at most HN_F16_RUN products at every
 * step. What lies below 2^-14 is wrong by 2^-25. Second orders are within the factor. */
static double f16_bound_of(size_t k, double sum, double mag_a, double mag_b) {
  const double u = 0x1p-11, run = k < HN_F16_RUN ? (double)k : HN_F16_RUN;
  return sum * (2 * u + run * u + (double)k * CK_EPS) * 1.05 + 0x1p-25 * (2 * (double)k + mag_a + mag_b + 1);
}

static double ops_bound_of(const hn_bf16_ops *o, uint32_t parts, size_t k, double sum, double mag_a,
                           double mag_b) {
  return o->f16 ? f16_bound_of(k, sum, mag_a, mag_b) : bound_of(parts, k, sum, mag_a, mag_b);
}

/* Products of CK_WIDE are beyond f16. */
static bool is_in_range(const hn_bf16_ops *o, enum ck_fill fill) { return !o->f16 || fill != CK_WIDE; }

/* Inf operands may give NaN where the sum of the products is infinite. */
static void near_or_nan(ck *c, size_t index, float got, double want, double bound, double sum) {
  if (isinf(sum) && isnan(got)) want = NAN;
  ck_near(c, index, got, want, bound);
}

static uint16_t *alloc16(ck *c, size_t n) { return (uint16_t *)(void *)ck_alloc(c, (n + 1) / 2, 0); }

/* ---------------------------------------------------------------- parts */

static void check_value(ck *c, size_t i, float x, const uint16_t *part, size_t apart, uint32_t parts) {
  const double v = (double)x;
  /* Cutting, near the largest numbers, is twice as coarse as rounding. */
  double rest = v, u = fabs(v) >= 0x1.fep127 ? 0x1p-7 : 0x1p-8, left = fabs(v);
  for (uint32_t p = 0; p < parts; p++) {
    const double got = (double)hn_bf16_to_f32(part[p * apart]);
    if (!isfinite(x)) {
      const bool same = isnan(x) ? isnan(got) : got == v;
      ck_true(c, p ? got == 0 : same, "Inf and NaN keep what they are, their other parts are 0");
      continue;
    }
    ck_true(c, isfinite(got), "the parts of a number are numbers");
    rest -= got, left *= u;
    ck_near(c, i, (float)rest, 0, (p < 2 ? left : 0) + (p + 1) * 0x1p-126); /* three parts hold all of it */
    u = 0x1p-8;
  }
}

static void check_f16(ck *c, const hn_bf16_ops *o) {
  static const float corner[] = {65504, 65519, 65520, -65520,   INFINITY, -INFINITY,
                                 NAN,   1e-8f, 6e-8f, -6.1e-5f, -0.0f};
  for (size_t n = 1; n <= 100; n += n < 40 ? 1 : 13)
    for (int fill = 0; fill < CK_FILLS; fill++) {
      ck_case(c, "to f16 n=%zu fill=%s", n, ck_fill_name((enum ck_fill)fill));
      float *x = ck_alloc(c, n, 0);
      uint16_t *to = alloc16(c, n);
      ck_fill(c, x, n, (enum ck_fill)fill);
      for (size_t i = 0; i < sizeof corner / sizeof *corner && n > 60; i++) x[3 * i] = corner[i];
      o->split(x, n, to, 0, 1);
      for (size_t i = 0; i < n; i++) {
        const bool number = !isnan(x[i]);
        ck_true(c, number ? to[i] == hn_f32_to_f16(x[i]) : isnan(hn_f16_to_f32(to[i])),
                "rounded to the nearest f16");
      }
      ck_release_all(c);
    }
}

static void check_split(ck *c, const hn_bf16_ops *o) {
  static const float corner[] = {
      3.4028235e38f,   -3.4028235e38f, 3.39e38f,    3.3961e38f,  INFINITY, -INFINITY, NAN,
      1.17549435e-38f, 1e-45f,         1.00390625f, 1.01171875f, -0.0f,    65535.0f};
  for (size_t n = 1; n <= 100; n += n < 40 ? 1 : 13)
    for (int fill = 0; fill < CK_FILLS; fill++) {
      ck_case(c, "split n=%zu fill=%s", n, ck_fill_name((enum ck_fill)fill));
      float *x = ck_alloc(c, n, 0);
      const size_t apart = n + n % 2;
      uint16_t *part = alloc16(c, 3 * apart), *fewer = alloc16(c, 3 * apart);
      ck_fill(c, x, n, (enum ck_fill)fill);
      for (size_t i = 0; i < sizeof corner / sizeof *corner && n > 60; i++) x[3 * i] = corner[i];
      o->split(x, n, part, (ptrdiff_t)apart, 3);
      for (size_t i = 0; i < n; i++) check_value(c, i, x[i], part + i, apart, 3);
      for (uint32_t parts = 1; parts < 3; parts++) {
        o->split(x, n, fewer, (ptrdiff_t)apart, parts);
        for (size_t i = 0; i < n; i++) {
          check_value(c, i, x[i], fewer + i, apart, parts);
          ck_true(c, fewer[i] == part[i], "the first part does not depend on the others");
        }
      }
      ck_release_all(c);
    }
}

/* ---------------------------------------------------------------- packing */

/* A kernel's way of packing gives what its split gives: rows or columns of B contiguous, or taps between
 * neighbours (spread 3), with places that are not there, and numbers that only split takes. */
static void check_pack(ck *c, const hn_bf16_ops *o, size_t n, size_t k, int order, uint32_t parts,
                       float scale, bool corners) {
  enum { SPREAD = 3 };
  static const float corner[] = {3.4028235e38f, 3.3961e38f, INFINITY, -INFINITY, NAN, 1e-45f, -0.0f};
  const size_t steps = (k + 31) / 32, packed = hn_bf16_packed(n, steps, parts), values = n * k * SPREAD;
  ck_case(c, "pack n=%zu k=%zu order=%d parts=%u scale=%g corners=%d", n, k, order, parts, (double)scale,
          corners);
  hn_bf16_ops plain = *o;
  plain.pack_tile = NULL;
  float *b = ck_alloc(c, values, 0);
  uint16_t *want = alloc16(c, packed), *got = alloc16(c, packed);
  int64_t *at = calloc(steps * 32 + 1, sizeof *at);
  if (!at) exit(6);
  ck_fill(c, b, values, CK_RANDOM);
  for (size_t i = 0; corners && i < values; i += 97) b[i] = corner[i / 97 % (sizeof corner / sizeof *corner)];
  for (size_t i = 0; i < steps * 32; i++) {
    const bool there = i < k && (order != 2 || i % 7 != 3);
    at[i] = !there ? -1 : (int64_t)(order == 0 ? i * n : order == 1 ? i : i * SPREAD);
  }
  const int64_t sn = order == 0 ? 1 : (int64_t)(order == 1 ? k : k * SPREAD);
  hn_bf16_pack(&plain, b, at, sn, steps, n, 0, n, scale, parts, want);
  hn_bf16_pack(o, b, at, sn, steps, n, 0, n, scale, parts, got);
  size_t differ = 0;
  for (size_t i = 0; i < packed; i++) differ += want[i] != got[i];
  ck_true(c, differ == 0, "the same as by split");
  free(at);
  ck_release_all(c);
}

static void check_packs(ck *c, const hn_bf16_ops *o) {
  static const size_t columns[] = {1, 15, 16, 17, 31, 33, 80}, depths[] = {1, 31, 32, 64, 75};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    for (size_t j = 0; j < sizeof depths / sizeof *depths; j++)
      for (int order = 0; order < 3; order++)
        for (uint32_t parts = 1; parts <= o->parts; parts++)
          for (int corners = 0; corners < 2; corners++)
            check_pack(c, o, columns[i], depths[j], order, parts, corners ? 1 : 0.37f, corners != 0);
}

/* ---------------------------------------------------------------- tiles */

typedef struct tile_case {
  uint32_t rows, m, n;
  size_t k;
  uint32_t parts, flags;
  ptrdiff_t dc, dr;
  enum ck_fill fill;
} tile_case;

static void check_tile(ck *c, const hn_bf16_ops *o, const tile_case *s) {
  const size_t k = s->k, steps = (k + 31) / 32, parts = s->parts;
  const size_t held = hn_bf16_round(s->m, s->rows), block = held * 32 * parts + 32;
  const size_t ldc = s->n + (size_t)s->dc, ldr = s->n + (size_t)s->dr;
  ck_case(c, "tile parts=%u rows=%u m=%u n=%u k=%zu flags=%u fill=%s", s->parts, s->rows, s->m, s->n, k,
          s->flags, ck_fill_name(s->fill));
  float *a = ck_alloc(c, s->m * k, 0), *b = ck_alloc(c, k * s->n, 0);
  float *y = ck_alloc(c, (s->m - 1) * ldc + s->n, s->dc ? 3 : 0),
        *r = ck_alloc(c, (s->m - 1) * ldr + s->n, 0);
  float *bias = ck_alloc(c, s->n, 0), *sums = ck_alloc(c, HN_BF16_ROWS * HN_BF16_PANEL, 0);
  uint16_t *parted = alloc16(c, steps ? (steps - 1) * block + held * 32 * parts : 0),
           *packed = alloc16(c, hn_bf16_packed(s->n, steps, s->parts) / 32 * 32),
           *next = alloc16(c, hn_bf16_parted(s->n, steps, 3)), *b_parts = packed;
  int32_t *step = calloc(steps + 1, sizeof *step);
  int64_t *at = calloc(steps * 32 + 1, sizeof *at);
  if (!step || !at) exit(6);
  ck_fill(c, a, s->m * k, s->fill);
  ck_fill(c, b, k * s->n, s->fill);
  ck_fill(c, r, (s->m - 1) * ldr + s->n, s->fill);
  ck_fill(c, bias, s->n, s->fill);
  for (size_t i = 0; i < steps * 32; i++) at[i] = i < k ? (int64_t)(i * s->n) : -1;
  for (size_t i = 0; i < steps; i++) step[i] = (int32_t)(i * block);
  hn_bf16_pack(o, b, at, 1, steps, s->n, 0, s->n, 1, s->parts, packed);
  if (parts == 3) {
    b_parts = alloc16(c, hn_bf16_parted(s->n, steps, 3));
    hn_bf16_part(o, packed, s->n, steps, b_parts);
  }
  o->rows_to_steps(a, (ptrdiff_t)k, s->m, k, parted, (ptrdiff_t)block, s->parts);
  o->begin(s->rows);
  hn_bf16_tile t = {.a = parted,
                    .step = step,
                    .steps = steps,
                    .row = (ptrdiff_t)(32 * parts),
                    .lo = 32,
                    .b = b_parts,
                    .c = sums,
                    .rows = s->rows,
                    .m = s->m,
                    .n = s->n,
                    .parts = s->parts,
                    .prefetch = (const char *)packed,
                    .prefetch_bytes = 100};
  /* On the way, the same weights become parts for a next call. */
  const uint32_t values = s->n > 16 ? 1024 : 512, groups = parts == 3 ? (uint32_t)steps * values / 32 : 0;
  t.ahead = (hn_bf16_ahead){(const float *)(const void *)packed, next, values, 0, groups};
  if (steps > 1 && s->m % 2) { /* in two pieces */
    t.steps = 1, t.ahead.last = groups / 3;
    o->tile(&t);
    t.accumulate = true, t.step++, t.b += hn_bf16_parted(s->n, 1, s->parts), t.steps = steps - 1;
    t.ahead.first = groups / 3, t.ahead.last = groups;
  }
  o->tile(&t);
  o->end();
  if (parts == 3 && steps)
    ck_true(c, !memcmp(next, b_parts, hn_bf16_parted(s->n, steps, 3) * sizeof *next),
            "parts made on the way are those made before");
  if (o->finite) {
    bool all = true;
    for (size_t i = 0; i < s->m * s->n; i++) all &= isfinite(sums[i / s->n * HN_BF16_PANEL + i % s->n]) != 0;
    ck_true(c, o->finite(sums, s->m, s->n) == all, "Inf and NaN among the sums are found, beyond them none");
  }
  const hn_bf16_store out = {.from = sums,
                             .c = y,
                             .ldc = (ptrdiff_t)ldc,
                             .m = s->m,
                             .n = s->n,
                             .flags = s->flags,
                             .lo = -0.25f,
                             .hi = 0.5f,
                             .slope = 0.125f,
                             .bias = bias,
                             .residual = r,
                             .ldr = (ptrdiff_t)ldr};
  o->store(&out);
  for (size_t i = 0; i < s->m; i++)
    for (size_t j = 0; j < s->n; j++) {
      double acc = 0, mag = 0, mag_a = 0, mag_b = 0;
      for (size_t l = 0; l < k; l++) {
        double p = (double)a[i * k + l] * b[l * s->n + j];
        acc += p, mag += fabs(p), mag_a += fabs((double)a[i * k + l]), mag_b += fabs((double)b[l * s->n + j]);
      }
      double bound = ops_bound_of(o, s->parts, k, mag, mag_a, mag_b), more = 0;
      double want = ck_epilogue(s->flags, acc, &more, bias[j], r[i * ldr + j], out.lo, out.hi, out.slope);
      near_or_nan(c, i * s->n + j, y[i * ldc + j], want,
                  bound + 4 * CK_EPS * (more + mag + bound) + 4 * CK_TINY, acc);
    }
  free(step);
  free(at);
  ck_release_all(c);
}

/* What a stored result of 16 bits may differ by from one of f32, and where it is infinite. */
static double stored(const hn_bf16_ops *o, float got, double want, double *bound) {
  const double u = o->f16 ? 0x1p-11 : 0x1p-8, most = o->f16 ? 65504 : 0x1.fep127;
  *bound += u * (fabs(want) + *bound) + (o->f16 ? 0x1p-24 : 0x1p-126);
  return isinf(got) && fabs(want) + *bound >= most && (got > 0) == (want > 0) ? got : want;
}

/* ---------------------------------------------------------------- tiles that go out in one call */

typedef struct fused_case {
  uint32_t m, n, flags; /* flags: also HN_BF16_* */
  size_t k;
  bool at;
  enum ck_fill fill;
} fused_case;

/* Of minus infinity, the limit. */
static double gelu(double x) { return x == -INFINITY ? 0 : x * 0.5 * erfc(-x * M_SQRT1_2); }

/* Column j of a row of pairs. */
static size_t pair_place(size_t j) { return j < 16 ? 2 * j : 2 * (j - 16) + 1; }

static void check_fused_tile(ck *c, const hn_bf16_ops *o, const fused_case *s) {
  const size_t k = s->k, steps = (k + 31) / 32, block = s->m * 32 + 32;
  const bool pairs = s->flags & HN_BF16_PAIRS, narrow = s->flags & HN_BF16_NARROW_C,
             narrow_r = s->flags & HN_BF16_NARROW_RESIDUAL;
  const size_t width = pairs ? HN_BF16_PANEL : s->n, ldc = width + (pairs ? 0 : 3), ldr = s->n + 2;
  ck_case(c, "fused m=%u n=%u k=%zu flags=%u at=%d fill=%s", s->m, s->n, k, s->flags, s->at,
          ck_fill_name(s->fill));
  float *a = ck_alloc(c, s->m * k, 0), *b = ck_alloc(c, k * s->n, 0), *bias = ck_alloc(c, s->n, 0);
  float *r = ck_alloc(c, (s->m - 1) * ldr + s->n, 0), *y = ck_alloc(c, (s->m - 1) * ldc + width, 0);
  uint16_t *parted = alloc16(c, (steps - 1) * block + s->m * 32),
           *half = alloc16(c, (s->m - 1) * ldc + width), *packed = alloc16(c, hn_bf16_packed(s->n, steps, 1));
  int32_t *step = calloc(steps, sizeof *step), *at = calloc(s->m, sizeof *at);
  int64_t *from = calloc(steps * 32, sizeof *from);
  if (!step || !at || !from) exit(6);
  ck_fill(c, a, s->m * k, s->fill);
  ck_fill(c, b, k * s->n, s->fill);
  ck_fill(c, r, (s->m - 1) * ldr + s->n, s->fill);
  ck_fill(c, bias, s->n, s->fill);
  uint16_t *narrow_residual = alloc16(c, (s->m - 1) * ldr + s->n);
  for (size_t i = 0; i < (s->m - 1) * ldr + s->n && narrow_r; i++)
    narrow_residual[i] = hn_f32_to_bf16(r[i]), r[i] = hn_bf16_to_f32(narrow_residual[i]);
  for (size_t i = 0; i < steps * 32; i++) from[i] = i < k ? (int64_t)(i * s->n) : -1;
  for (size_t i = 0; i < steps; i++) step[i] = (int32_t)(i * block);
  for (size_t i = 0; i < s->m; i++) at[i] = (int32_t)((s->m - 1 - i) * ldc);
  hn_bf16_pack(o, b, from, 1, steps, s->n, 0, s->n, 1, 1, packed);
  o->rows_to_steps(a, (ptrdiff_t)k, s->m, k, parted, (ptrdiff_t)block, 1);
  const hn_bf16_tile t = {.a = parted,
                          .step = step,
                          .steps = steps,
                          .short_from = steps - 1,
                          .short_pairs = hn_bf16_short_pairs((int64_t)k),
                          .row = 32,
                          .b = packed,
                          .m = s->m,
                          .n = s->n,
                          .parts = 1};
  const hn_bf16_store out = {.c = narrow || pairs ? (void *)half : y,
                             .ldc = (ptrdiff_t)ldc,
                             .n = s->n,
                             .flags = s->flags,
                             .lo = -0.25f,
                             .hi = 0.5f,
                             .slope = 0.125f,
                             .bias = bias,
                             .residual = narrow_r ? (const void *)narrow_residual : r,
                             .ldr = (ptrdiff_t)ldr,
                             .at = s->at ? at : NULL};
  o->fused(&t, &out);
  for (size_t i = 0; i < s->m; i++)
    for (size_t j = 0; j < width; j++) {
      const size_t place = s->at ? (size_t)at[i] : i * ldc;
      if (j >= s->n) {
        ck_true(c, half[place + pair_place(j)] == 0, "columns that are not there are 0");
        continue;
      }
      double acc = 0, mag = 0, mag_a = 0, mag_b = 0, more = 0;
      for (size_t l = 0; l < k; l++) {
        double p = (double)a[i * k + l] * b[l * s->n + j];
        acc += p, mag += fabs(p), mag_a += fabs((double)a[i * k + l]), mag_b += fabs((double)b[l * s->n + j]);
      }
      const double sum = acc;
      double bound = bound_of(1, k, mag, mag_a, mag_b);
      double want = ck_epilogue(s->flags, acc, &more, bias[j], r[i * ldr + j], out.lo, out.hi, out.slope);
      bound += 4 * CK_EPS * (more + mag + bound) + 4 * CK_TINY;
      float got = y[place + j];
      if (s->flags & HN_BF16_GELU) { /* its slope is below 1.13 */
        bound = 1.13 * bound + 0x1.2p-13 * fabs(gelu(want)) + 0x1p-23 * fabs(want);
        want = gelu(want);
      }
      if (narrow || pairs) {
        got = hn_bf16_to_f32(half[place + (pairs ? pair_place(j) : j)]);
        want = stored(o, got, want, &bound);
      }
      near_or_nan(c, i * width + j, got, want, bound, sum);
    }
  free(step), free(at), free(from);
  ck_release_all(c);
}

static void check_fused(ck *c, const hn_bf16_ops *o) {
  enum { C = HN_BF16_NARROW_C, R = HN_EPI_RESIDUAL, B = HN_EPI_BIAS };
  static const uint32_t flags[] = {0,
                                   B,
                                   B | HN_EPI_CLAMP,
                                   B | R | HN_EPI_LEAKY,
                                   C | B,
                                   C | B | R | HN_BF16_NARROW_RESIDUAL | HN_EPI_CLAMP,
                                   C | R | HN_BF16_NARROW_RESIDUAL | HN_EPI_RESIDUAL_AFTER | HN_EPI_LEAKY,
                                   HN_BF16_PAIRS | B | HN_EPI_CLAMP,
                                   HN_BF16_PAIRS | B | HN_EPI_LEAKY,
                                   HN_BF16_PAIRS,
                                   C | HN_BF16_GELU,
                                   C | B | HN_BF16_GELU};
  static const size_t ks[] = {1, 16, 24, 32, 33, 97};
  static const uint32_t ns[] = {32, 16, 24, 31, 17, 15, 1};
  size_t turn = 0;
  for (uint32_t m = 1; m <= 2 * o->rows + 2; m++)
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
      for (size_t n = 0; n < sizeof ns / sizeof *ns && !ck_failed(c); n++, turn++) {
        if (flags[f] & HN_BF16_GELU && !o->gelu) continue;
        const fused_case s = {
            m, ns[n], flags[f], ks[turn % 6], turn % 2 != 0, (enum ck_fill)(turn / 6 % CK_FILLS)};
        check_fused_tile(c, o, &s);
      }
}

/* Whole numbers whose sums f16 holds come out as they are. */
static void check_exact(ck *c, const hn_bf16_ops *o) {
  enum { M = 28, N = 32, K = 300, STEPS = (K + 31) / 32 };
  ck_case(c, "whole numbers");
  float *a = ck_alloc(c, M * K, 0), *b = ck_alloc(c, K * N, 0),
        *y = ck_alloc(c, HN_BF16_ROWS * HN_BF16_PANEL, 0);
  uint16_t *rounded = alloc16(c, M * STEPS * 32), *packed = alloc16(c, hn_bf16_packed(N, STEPS, 1));
  int32_t step[STEPS];
  int64_t at[STEPS * 32];
  for (size_t i = 0; i < M * K; i++) a[i] = (float)(ck_random(c) % 9) - 4;
  for (size_t i = 0; i < K * N; i++) b[i] = (float)(ck_random(c) % 9) - 4;
  for (int64_t i = 0; i < STEPS * 32; i++) at[i] = i < K ? i * N : -1;
  for (int32_t i = 0; i < STEPS; i++) step[i] = i * M * 32;
  hn_bf16_pack(o, b, at, 1, STEPS, N, 0, N, 1, 1, packed);
  o->rows_to_steps(a, K, M, K, rounded, M * 32, 1);
  const hn_bf16_tile t = {.a = rounded,
                          .step = step,
                          .steps = STEPS,
                          .row = 32,
                          .b = packed,
                          .c = y,
                          .rows = M,
                          .m = M,
                          .n = N,
                          .parts = 1};
  o->tile(&t);
  for (size_t i = 0; i < M; i++)
    for (size_t j = 0; j < N; j++) {
      double want = 0;
      for (size_t k = 0; k < K; k++) want += (double)a[i * K + k] * (double)b[k * N + j];
      ck_near(c, i * N + j, y[i * HN_BF16_PANEL + j], want, 0);
    }
  ck_release_all(c);
}

/* Three parts are as good as f32: a mean error of a sum of 256 products of numbers in [-1, 1] is below 2^-23
 * of their magnitudes; two parts leave four times as much. */
static void check_triple(ck *c, const hn_bf16_ops *o) {
  enum { M = 32, N = 32, K = 256, STEPS = K / 32 };
  ck_case(c, "mean error of three parts");
  float *a = ck_alloc(c, M * K, 0), *b = ck_alloc(c, K * N, 0),
        *y = ck_alloc(c, HN_BF16_ROWS * HN_BF16_PANEL, 0);
  uint16_t *parted = alloc16(c, M * STEPS * 96), *packed = alloc16(c, hn_bf16_packed(N, STEPS, 3)),
           *b_parts = alloc16(c, hn_bf16_parted(N, STEPS, 3));
  int32_t step[STEPS];
  int64_t at[STEPS * 32];
  ck_fill(c, a, M * K, CK_RANDOM);
  ck_fill(c, b, K * N, CK_RANDOM);
  for (int64_t i = 0; i < STEPS * 32; i++) at[i] = i * N;
  for (int32_t i = 0; i < STEPS; i++) step[i] = i * M * 96;
  hn_bf16_pack(o, b, at, 1, STEPS, N, 0, N, 1, 3, packed);
  hn_bf16_part(o, packed, N, STEPS, b_parts);
  o->rows_to_steps(a, K, M, K, parted, M * 96, 3);
  const hn_bf16_tile t = {.a = parted,
                          .step = step,
                          .steps = STEPS,
                          .row = 96,
                          .lo = 32,
                          .b = b_parts,
                          .c = y,
                          .rows = M / 2,
                          .m = M,
                          .n = N,
                          .parts = 3};
  o->begin(M / 2);
  o->tile(&t);
  o->end();
  double mean = 0;
  for (size_t i = 0; i < M; i++)
    for (size_t j = 0; j < N; j++) {
      double want = 0, mag = 0;
      for (size_t k = 0; k < K; k++) {
        const double p = (double)a[i * K + k] * (double)b[k * N + j];
        want += p, mag += fabs(p);
      }
      mean += fabs((double)y[i * HN_BF16_PANEL + j] - want) / mag / (M * N);
    }
  ck_true(c, mean < 0x1p-23, "a mean error of f32's order");
  ck_release_all(c);
}

static void check_tiles(ck *c, const hn_bf16_ops *o) {
  static const size_t ks[] = {1, 2, 31, 32, 33, 97};
  static const uint32_t flags[] = {0,
                                   HN_EPI_BIAS,
                                   HN_EPI_BIAS | HN_EPI_CLAMP,
                                   HN_EPI_BIAS | HN_EPI_LEAKY,
                                   HN_EPI_RESIDUAL | HN_EPI_LEAKY,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER};
  size_t turn = 0;
  for (uint32_t rows = 1; rows <= o->rows && !ck_failed(c); rows += rows < 3 ? 1 : 3)
    for (uint32_t m = 1; m <= rows * o->row_tiles; m++)
      for (uint32_t n = 1; n <= HN_BF16_PANEL; n += 1 + m % 3)
        for (uint32_t parts = 1; parts <= o->parts; parts++, turn++) {
          tile_case s = {rows,
                         m,
                         n,
                         ks[turn % 6],
                         parts,
                         flags[turn % 7],
                         (ptrdiff_t)(turn % 5),
                         (ptrdiff_t)(turn % 4 ? 0 : 5),
                         (enum ck_fill)(turn / 6 % CK_FILLS)};
          if (is_in_range(o, s.fill)) check_tile(c, o, &s);
        }
  for (size_t f = 0; f < 7; f++)
    for (int fill = 0; fill < CK_FILLS; fill++)
      for (uint32_t parts = 1; parts <= o->parts; parts++)
        for (uint32_t n = 15; n <= 32; n += 17) {
          tile_case s = {o->rows, o->rows * o->row_tiles, n, 161, parts, flags[f], 5, 7, (enum ck_fill)fill};
          if (is_in_range(o, s.fill)) check_tile(c, o, &s);
        }
}

/* ---------------------------------------------------------------- convolutions */

/* Everything of one case; x .. bias as the driver sees them. */
typedef struct conv_run {
  hn_bf16_conv g;
  int64_t k, ip, op, oc;
  float *x, *y, *r, *bias, *w; /* w [groups * cout][cin][taps] */
  int32_t *step;
  int64_t *at;
  uint16_t *packed, *workspace;
  uint16_t *narrow_x, *narrow_y, *narrow_r; /* narrow: x, y and r as the driver sees them */
  hn_epilogue e;
} conv_run;

/* Values of the operands' own type; x becomes what they hold. */
static uint16_t *narrowed(ck *c, const hn_bf16_ops *o, float *x, size_t n) {
  uint16_t *to = alloc16(c, n);
  for (size_t i = 0; i < n; i++) {
    to[i] = o->f16 ? hn_f32_to_f16(x[i]) : hn_f32_to_bf16(x[i]);
    x[i] = o->f16 ? hn_f16_to_f32(to[i]) : hn_bf16_to_f32(to[i]);
  }
  return to;
}

static void widen_f16(float *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = hn_f16_to_f32(((const uint16_t *)from)[i]);
}
static void widen_bf16(float *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = hn_bf16_to_f32(((const uint16_t *)from)[i]);
}

static bool prepare(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, uint32_t parts, bool narrow,
                    int64_t joined, enum ck_fill fill, size_t l2, conv_run *q) {
  memset(q, 0, sizeof *q);
  hn_bf16_conv *g = &q->g;
  int64_t pixels = s->batch, in_pixels = s->batch, taps = 1;
  *g = (hn_bf16_conv){.parts = parts,
                      .narrow_in = narrow,
                      .narrow_out = narrow,
                      .batch = s->batch,
                      .groups = s->groups,
                      .cin = s->cin,
                      .cout = s->cout};
  for (int i = 0; i < 3; i++) {
    g->in[i] = s->in[i], g->kernel[i] = s->kernel[i], g->stride[i] = s->stride[i],
    g->dilation[i] = s->dilation[i], g->pad[i] = s->pad[i];
    g->out[i] =
        (s->in[i] + s->pad[i] + s->pad_end[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    taps *= s->kernel[i], pixels *= g->out[i], in_pixels *= s->in[i];
  }
  q->k = taps * s->cin, q->oc = s->groups * s->cout;
  q->ip = s->groups * s->cin + s->extra_in, q->op = q->oc + s->extra_out;
  g->in_pitch = q->ip, g->in_batch = s->in[0] * s->in[1] * s->in[2] * q->ip;
  g->view = (hn_view){g->out[0] * g->out[1] * g->out[2] * q->op, g->out[1] * g->out[2] * q->op,
                      g->out[2] * q->op, q->op};
  const char *why = "";
  if (joined > 1) hn_bf16_join(g, joined);
  if (!hn_bf16_plan(g, o, 2, 32u << 10, l2, &why)) return false;
  const size_t nx = (size_t)((in_pixels - 1) * q->ip + s->groups * s->cin),
               ny = (size_t)((pixels - 1) * q->op + q->oc), nw = (size_t)(q->oc * q->k);
  q->x = ck_alloc(c, nx, 0), q->y = ck_alloc(c, ny, 0), q->r = ck_alloc(c, ny, 0);
  q->bias = ck_alloc(c, (size_t)q->oc, 0), q->w = ck_alloc(c, nw, 0);
  ck_fill(c, q->x, nx, fill);
  ck_fill(c, q->w, nw, fill);
  ck_fill(c, q->r, ny, fill);
  ck_fill(c, q->bias, (size_t)q->oc, fill);
  q->step = calloc((size_t)g->steps, sizeof *q->step);
  q->at = calloc((size_t)g->steps * 32, sizeof *q->at);
  const size_t weights = hn_bf16_weights(g);
  q->packed = alloc16(c, weights * (size_t)g->groups);
  q->workspace = alloc16(c, (hn_bf16_workspace(g, 2) + 63) / 64 * 32);
  if (!q->step || !q->at) exit(6);
  hn_bf16_steps(g, q->step);
  hn_bf16_places(g, q->at);
  const int64_t column = q->k * (joined > 1 ? joined : 1);
  float *spread = joined > 1 ? ck_alloc(c, (size_t)(g->cout * column), 0) : NULL;
  for (int64_t i = 0; i < g->groups; i++) {
    const float *w = q->w + i * g->cout * q->k;
    if (spread) hn_bf16_spread(g, w, spread);
    hn_bf16_pack(o, spread ? spread : w, q->at, column, (size_t)g->steps, (size_t)g->cout, 0, (size_t)g->cout,
                 1, parts, q->packed + (size_t)i * weights);
  }
  q->e = (hn_epilogue){.flags = s->flags, .lo = -0.25f, .hi = 0.5f, .slope = 0.125f, .bias = q->bias};
  if (!(s->flags & HN_EPI_BIAS)) q->e.bias = NULL;
  if (s->flags & HN_EPI_RESIDUAL) q->e.residual = q->r, q->e.residual_view = g->view;
  if (s->post) {
    q->e.rows = hn_post_find(HN_ISA_SCALAR);
    q->e.n_post = 2;
    q->e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = ck_square, .p = {2, 0}};
    q->e.post[1] = (hn_post){.kind = HN_POST_MUL, .v = q->r, .view = g->view};
  }
  if (narrow) {
    q->narrow_x = narrowed(c, o, q->x, nx), q->narrow_r = narrowed(c, o, q->r, ny),
    q->narrow_y = alloc16(c, ny);
    if (q->e.residual) q->e.residual = NULL, q->e.narrow_residual = q->narrow_r;
    if (s->post) q->e.post[1].v = NULL, q->e.post[1].narrow = q->narrow_r;
    q->e.widen = o->f16 ? widen_f16 : widen_bf16;
  }
  return true;
}

static void release(ck *c, conv_run *q) {
  free(q->step);
  free(q->at);
  ck_release_all(c);
}

/* One output, with the bound of its error. */
static double oracle(const hn_bf16_ops *o, const ck_conv_case *s, const conv_run *q, const int64_t at[4],
                     int64_t column, double *bound, double *sum) {
  const hn_bf16_conv *g = &q->g;
  double acc = 0, mag = 0, mag_a = 0, mag_b = 0, more = 0;
  const int64_t group = column / s->cout, taps = q->k / s->cin;
  for (int64_t t = 0; t < taps; t++) {
    const int64_t tap[3] = {t / (s->kernel[1] * s->kernel[2]), t / s->kernel[2] % s->kernel[1],
                            t % s->kernel[2]};
    int64_t pixel = at[0];
    bool in = true;
    for (int i = 0; i < 3; i++) {
      const int64_t v = at[i + 1] * s->stride[i] + tap[i] * s->dilation[i] - s->pad[i];
      in = in && v >= 0 && v < s->in[i];
      pixel = pixel * s->in[i] + v;
    }
    for (int64_t ci = 0; ci < s->cin; ci++) {
      /* padding multiplies by zero: Inf and NaN weights make NaN there, as in the kernel */
      const double a = in ? (double)q->x[pixel * q->ip + group * s->cin + ci] : 0.0,
                   b = (double)q->w[(column * s->cin + ci) * taps + t];
      acc += a * b, mag += fabs(a * b), mag_a += fabs(a), mag_b += fabs(b);
    }
  }
  *sum = acc;
  const int64_t y = hn_view_at(&g->view, at[0], at[1], at[2], at[3]) + column;
  double want = ck_epilogue(s->flags, acc, &more, q->bias[column], q->r[y], q->e.lo, q->e.hi, q->e.slope);
  *bound = ops_bound_of(o, (uint32_t)g->parts, (size_t)(g->steps * 32), mag, mag_a, mag_b);
  *bound += 4 * CK_EPS * (more + mag + *bound) + 4 * CK_TINY;
  if (s->post) { /* derivative of 2 x^2 r, and its three roundings */
    *bound = 2 * (2 * fabs(want) * *bound + *bound * *bound) * fabs((double)q->r[y]);
    want = 2.0 * want * want * q->r[y];
    *bound += 4 * CK_EPS * fabs(want) + 4 * CK_TINY;
  }
  return want;
}

static void check_conv(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, uint32_t parts, bool narrow,
                       int64_t joined, enum ck_fill fill, size_t l2) {
  ck_case(c,
          "conv parts %u n%lld g%lld %lld->%lld in %lldx%lldx%lld k %lldx%lldx%lld s%lld,%lld d%lld p%lld "
          "pitch+%lld/%lld fill=%s l2=%zu%s joined %lld",
          parts, (long long)s->batch, (long long)s->groups, (long long)s->cin, (long long)s->cout,
          (long long)s->in[0], (long long)s->in[1], (long long)s->in[2], (long long)s->kernel[0],
          (long long)s->kernel[1], (long long)s->kernel[2], (long long)s->stride[1], (long long)s->stride[2],
          (long long)s->dilation[2], (long long)s->pad[2], (long long)s->extra_in, (long long)s->extra_out,
          ck_fill_name(fill), l2, narrow ? " narrow" : "", (long long)joined);
  conv_run q;
  if (!prepare(c, o, s, parts, narrow, joined, fill, l2, &q)) {
    ck_true(c, false, "the driver refuses the case");
    return;
  }
  const void *x = narrow ? (const void *)q.narrow_x : q.x;
  void *y = narrow ? (void *)q.narrow_y : q.y;
  const hn_bf16_args args = {&q.g, o, q.step, x, q.packed, y, &q.e, q.workspace, 2, NULL, NULL};
  hn_bf16_exec(&args, ck_serial, NULL);
  size_t index = 0;
  int64_t at[4];
  for (at[0] = 0; at[0] < s->batch; at[0]++)
    for (at[1] = 0; at[1] < q.g.out[0]; at[1]++)
      for (at[2] = 0; at[2] < q.g.out[1]; at[2]++)
        for (at[3] = 0; at[3] < q.g.out[2]; at[3]++)
          for (int64_t j = 0; j < q.oc; j++, index++) {
            double bound, sum, want = oracle(o, s, &q, at, j, &bound, &sum);
            const int64_t place = hn_view_at(&q.g.view, at[0], at[1], at[2], at[3]) + j;
            float got = q.y[place];
            if (narrow) {
              q.e.widen(&got, q.narrow_y + place, 1);
              want = stored(o, got, want, &bound);
            }
            /* Folded lines multiply a few neighbours of the last tap by 0, joined groups other groups'
             * pixels; three parts promise f32. */
            if ((q.g.fold || joined > 1) && parts < 3 && fill == CK_SPECIAL && isnan(got)) want = NAN;
            /* Three parts promise f32. */
            near_or_nan(c, index, got, want, bound, parts == 3 ? 0 : sum);
          }
  release(c, &q);
}

/* What is not finite in the last image changes no bit of the others, whatever lies beside each other. */
static void check_apart(ck *c, const hn_bf16_ops *o, const ck_conv_case *s, float poison, size_t l2) {
  conv_run q;
  ck_case(c, "one %g in the last of %lld images, %lld->%lld k %lldx%lld", (double)poison, (long long)s->batch,
          (long long)s->cin, (long long)s->cout, (long long)s->kernel[1], (long long)s->kernel[2]);
  if (!prepare(c, o, s, 3, false, 1, CK_RANDOM, l2, &q)) {
    ck_true(c, false, "the driver refuses the case");
    return;
  }
  const hn_bf16_args args = {&q.g, o, q.step, q.x, q.packed, q.y, &q.e, q.workspace, 2, NULL, NULL};
  const size_t others = (size_t)((s->batch - 1) * q.g.view.batch);
  float *clean = ck_alloc(c, others, 0);
  hn_bf16_exec(&args, ck_serial, NULL);
  memcpy(clean, q.y, others * sizeof *clean);
  q.x[(s->batch - 1) * q.g.in_batch] = poison;
  hn_bf16_exec(&args, ck_serial, NULL);
  ck_true(c, !memcmp(clean, q.y, others * sizeof *clean), "the other images keep their bits");
  release(c, &q);
}

static void check_poisons(ck *c, const hn_bf16_ops *o) {
  static const ck_conv_case cases[] = {
      {3, 1, 64, 40, {1, 1, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false},
      {3, 1, 3, 33, {1, 9, 8}, {1, 3, 3}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 0, 0, 0, false},
      {2, 1, 40, 70, {1, 1, 9}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, 0, 0, 0, false},
      {4, 1, 3, 48, {1, 16, 16}, {1, 8, 8}, {1, 8, 8}, {1, 1, 1}, {0}, {0}, 0, 0, HN_EPI_BIAS, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t l2 = 8u << 10; l2 <= 1u << 20; l2 <<= 7) {
      check_apart(c, o, &cases[i], NAN, l2);
      check_apart(c, o, &cases[i], -INFINITY, l2);
    }
}

/* The driver refuses empty tensors, and groups that leave most of a step of 32 channels unused. */
static bool is_taken(const ck_conv_case *s) {
  return s->batch > 0 && s->cin > 0 && (s->groups == 1 || s->cin >= 16);
}

/* A processor of the tier may lack AVX512-FP16. */
static bool has_instructions(ck *c, const hn_bf16_ops *o) {
  if (o->f16 && !hn_cpu()->fp16) ck_lacks(c, "AVX512-FP16");
  return !o->f16 || hn_cpu()->fp16;
}

static void check(ck *c, const struct hn_kernel *k) {
  const hn_bf16_ops *o = k->ops;
  if (!has_instructions(c, o)) return;
  if (o->f16) {
    check_f16(c, o);
    check_exact(c, o);
  } else {
    check_split(c, o);
  }
  if (o->pack_tile) check_packs(c, o);
  if (o->parts > 2) check_triple(c, o), check_poisons(c, o);
  check_tiles(c, o);
  if (o->fused) check_fused(c, o);
  for (size_t i = 0; i < ck_n_conv_cases && !ck_failed(c); i++) {
    const ck_conv_case *s = &ck_conv_cases[i];
    for (int fill = 0; fill < CK_FILLS && is_taken(s); fill++)
      for (uint32_t parts = 1; parts <= o->parts && is_in_range(o, (enum ck_fill)fill); parts++) {
        check_conv(c, o, s, parts, false, 1, (enum ck_fill)fill, 1u << 20);
        check_conv(c, o, s, parts, false, 1, (enum ck_fill)fill, 8u << 10); /* many slabs */
        if (parts == 1) check_conv(c, o, s, 1, true, 1, (enum ck_fill)fill, (i % 2 ? 1u << 20 : 8u << 10));
      }
    for (int fill = 0; fill < CK_FILLS && s->groups > 1 && s->batch && s->cin * s->groups <= 96; fill++)
      if (is_in_range(o, (enum ck_fill)fill))
        check_conv(c, o, s, 1, i % 2, s->groups, (enum ck_fill)fill, i % 3 ? 1u << 20 : 8u << 10);
  }
}

/* ---------------------------------------------------------------- bench: one thread, through the driver */

static void alone(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  (void)pool;
  for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
}

static void bench_call(void *p) { hn_bf16_exec(p, alone, NULL); }

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t cin, cout, h, w, kernel, stride;
  } shape[] = {
      {"conv 7x7s2 3->64 224", 3, 64, 224, 224, 7, 2},    {"conv 1x1 64->256 56", 64, 256, 56, 56, 1, 1},
      {"conv 1x1 256->64 56", 256, 64, 56, 56, 1, 1},     {"conv 3x3 64->64 56", 64, 64, 56, 56, 3, 1},
      {"conv 3x3 128->128 28", 128, 128, 28, 28, 3, 1},   {"conv 3x3s2 256->256 28", 256, 256, 28, 28, 3, 2},
      {"conv 3x3 256->256 14", 256, 256, 14, 14, 3, 1},   {"conv 3x3 512->512 7", 512, 512, 7, 7, 3, 1},
      {"conv 1x1 1024->256 14", 1024, 256, 14, 14, 1, 1}, {"conv 3x3 512->1024 13", 512, 1024, 13, 13, 3, 1},
      {"gemm 128x768x3072", 768, 3072, 1, 128, 1, 1},     {"gemv 1x1000x2048", 2048, 1000, 1, 1, 1, 1}};
  const hn_bf16_ops *o = k->ops;
  const hn_cpu_info *cpu = hn_cpu();
  for (size_t i = 0; i < sizeof shape / sizeof *shape && k->isa > HN_ISA_SCALAR && has_instructions(c, o);
       i++)
    for (uint32_t parts = 1; parts <= o->parts; parts++) {
      const int64_t pad = shape[i].kernel / 2, kh = shape[i].h > 1 ? shape[i].kernel : 1;
      const ck_conv_case s = {1,
                              1,
                              shape[i].cin,
                              shape[i].cout,
                              {1, shape[i].h, shape[i].w},
                              {1, kh, shape[i].kernel},
                              {1, shape[i].h > 1 ? shape[i].stride : 1, shape[i].stride},
                              {1, 1, 1},
                              {0, pad, pad},
                              {0, pad, pad},
                              0,
                              0,
                              HN_EPI_BIAS,
                              false};
      conv_run q;
      if (!prepare(c, o, &s, parts, false, 1, CK_RANDOM, cpu->l2, &q)) continue;
      hn_bf16_args args = {&q.g, o, q.step, q.x, q.packed, q.y, &q.e, q.workspace, 1, NULL, NULL};
      double pixels = (double)(q.g.out[1] * q.g.out[2]), flops = 2.0 * pixels * (double)(s.cout * q.k);
      /* Twice the lanes of f32 in f16; products of parts. */
      const ck_work work = {.unit = o->f16 ? CK_F32 : CK_BF16,
                            .flops = o->f16 ? flops / 2 : hn_bf16_products(parts) * flops,
                            .read = 4.0 * (double)(s.in[1] * s.in[2] * s.cin) +
                                    2.0 * (double)hn_bf16_weights(&q.g),
                            .written = 4.0 * pixels * (double)s.cout};
      char label[64];
      static const char *const names[] = {"x1", "x3", "x6"};
      snprintf(label, sizeof label, "%s %s", shape[i].label, o->f16 ? "f16" : names[parts - 1]);
      ck_bench_line(c, label, ck_time(bench_call, &args), &work, 0);
      release(c, &q);
    }
}

const ck_family ck_family_gemm_bf16 = {"gemm_bf16", check, bench};
