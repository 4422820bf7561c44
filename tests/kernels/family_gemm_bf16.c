/* Family "gemm_bf16": splitting, packing, the tile kernel over all tile sizes and the way out, with operands
 * of one, two and three bf16 parts, and in f16; the whole through the driver is in gemm_bf16_conv.c. */
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "gemm_bf16.h"
#include "gemm_oracle.h"

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
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      ck_case(c, "to f16 n=%zu fill=%s", n, ck_fill_name((enum ck_fill)fill));
      float *x = ck_alloc(c, n, 0);
      uint16_t *to = ck_alloc16(c, n);
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
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      ck_case(c, "split n=%zu fill=%s", n, ck_fill_name((enum ck_fill)fill));
      float *x = ck_alloc(c, n, 0);
      const size_t apart = n + n % 2;
      uint16_t *part = ck_alloc16(c, 3 * apart), *fewer = ck_alloc16(c, 3 * apart);
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
  uint16_t *want = ck_alloc16(c, packed), *got = ck_alloc16(c, packed);
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
  uint16_t *parted = ck_alloc16(c, steps ? (steps - 1) * block + held * 32 * parts : 0),
           *packed = ck_alloc16(c, hn_bf16_packed(s->n, steps, s->parts) / 32 * 32),
           *next = ck_alloc16(c, hn_bf16_parted(s->n, steps, 3)), *b_parts = packed;
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
    b_parts = ck_alloc16(c, hn_bf16_parted(s->n, steps, 3));
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
      double bound = ck_bf16_bound(o, s->parts, k, mag, mag_a, mag_b), more = 0;
      double want = ck_epilogue(s->flags, acc, &more, bias[j], r[i * ldr + j], out.lo, out.hi, out.slope);
      ck_near_or_nan(c, i * s->n + j, y[i * ldc + j], want,
                     bound + 4 * CK_EPS * (more + mag + bound) + 4 * CK_TINY, acc);
    }
  free(step);
  free(at);
  ck_release_all(c);
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
  uint16_t *parted = ck_alloc16(c, (steps - 1) * block + s->m * 32),
           *half = ck_alloc16(c, (s->m - 1) * ldc + width),
           *packed = ck_alloc16(c, hn_bf16_packed(s->n, steps, 1));
  int32_t *step = calloc(steps, sizeof *step), *at = calloc(s->m, sizeof *at);
  int64_t *from = calloc(steps * 32, sizeof *from);
  if (!step || !at || !from) exit(6);
  ck_fill(c, a, s->m * k, s->fill);
  ck_fill(c, b, k * s->n, s->fill);
  ck_fill(c, r, (s->m - 1) * ldr + s->n, s->fill);
  ck_fill(c, bias, s->n, s->fill);
  uint16_t *narrow_residual = ck_alloc16(c, (s->m - 1) * ldr + s->n);
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
      double bound = ck_bf16x_bound(1, k, mag, mag_a, mag_b);
      double want = ck_epilogue(s->flags, acc, &more, bias[j], r[i * ldr + j], out.lo, out.hi, out.slope);
      bound += 4 * CK_EPS * (more + mag + bound) + 4 * CK_TINY;
      float got = y[place + j];
      if (s->flags & HN_BF16_GELU) { /* its slope is below 1.13 */
        bound = 1.13 * bound + 0x1.2p-13 * fabs(gelu(want)) + 0x1p-23 * fabs(want);
        want = gelu(want);
      }
      if (narrow || pairs) {
        got = hn_bf16_to_f32(half[place + (pairs ? pair_place(j) : j)]);
        want = ck_bf16_stored(o, got, want, &bound);
      }
      ck_near_or_nan(c, i * width + j, got, want, bound, sum);
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
  static const uint32_t ns[] = {32, 16, 24, 31, 17, 15, 8, 1};
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
  uint16_t *rounded = ck_alloc16(c, M * STEPS * 32), *packed = ck_alloc16(c, hn_bf16_packed(N, STEPS, 1));
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
  uint16_t *parted = ck_alloc16(c, M * STEPS * 96), *packed = ck_alloc16(c, hn_bf16_packed(N, STEPS, 3)),
           *b_parts = ck_alloc16(c, hn_bf16_parted(N, STEPS, 3));
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
          if (ck_bf16_in_range(o, s.fill)) check_tile(c, o, &s);
        }
  for (size_t f = 0; f < 7; f++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (uint32_t parts = 1; parts <= o->parts; parts++)
        for (uint32_t n = 15; n <= 32; n += 17) {
          tile_case s = {o->rows, o->rows * o->row_tiles, n, 161, parts, flags[f], 5, 7, (enum ck_fill)fill};
          if (ck_bf16_in_range(o, s.fill)) check_tile(c, o, &s);
        }
}

static void check(ck *c, const struct hn_kernel *k) {
  const hn_bf16_ops *o = k->ops;
  if (!ck_bf16_has_instructions(c, o)) return;
  if (o->f16) {
    check_f16(c, o);
    check_exact(c, o);
  } else {
    check_split(c, o);
  }
  if (o->pack_tile) check_packs(c, o);
  if (o->parts > 2) check_triple(c, o);
  check_tiles(c, o);
  if (o->fused) check_fused(c, o);
  ck_bf16_convs(c, o);
}

const ck_family ck_family_gemm_bf16 = {"gemm_bf16", check, ck_bf16_bench};
