/* Family "strip": every number of columns, and of rows up to three tiles, with rows of C that follow each
 * other and others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/strip/strip.h"
#include "base/integers.h"
#include "check.h"
#include "gemm_oracle.h"

typedef struct strip_case {
  size_t m, pieces, segment; /* k is pieces * segment */
  uint32_t n, flags, accumulate;
  bool places;          /* rows of C lie in threes, with a gap between one three and the next */
  ptrdiff_t skip;       /* between pieces of A */
  ptrdiff_t da, dc, dr; /* extra distance between rows */
  enum ck_fill fill;
  size_t ahead; /* thirds of the weights that are asked for meanwhile */
} strip_case;

static size_t place_of(const strip_case *s, size_t ldc, size_t i) {
  return i * ldc + (s->places ? i / 3 * 5 : 0);
}

static void check_strip(ck *c, const hn_strip_ops *o, const hn_gemm_ops *panels, const strip_case *s) {
  const size_t w = hn_gemm_panel_width(panels, s->n, 0), k = s->pieces * s->segment;
  const size_t width = s->pieces * (s->segment + (size_t)s->skip) - (s->pieces ? (size_t)s->skip : 0);
  const size_t lda = width + (size_t)s->da, ldc = s->n + (size_t)s->dc, ldr = s->n + (size_t)s->dr;
  const size_t all = place_of(s, ldc, s->m - 1) + s->n;
  ck_case(c, "m=%zu n=%u k=%zu*%zu+%td flags=%u acc=%u places=%d ld+%td/%td/%td fill=%s", s->m, s->n,
          s->pieces, s->segment, s->skip, s->flags, s->accumulate, s->places, s->da, s->dc, s->dr,
          ck_fill_name(s->fill));
  /* The last row of A, C and the residual ends at the guard page. */
  float *a = ck_alloc(c, (s->m - 1) * lda + width, s->da ? 1 : 0), *b = ck_alloc(c, k * s->n, 0);
  float *y = ck_alloc(c, all, s->dc ? 3 : 0), *r = ck_alloc(c, (s->m - 1) * ldr + s->n, 0);
  float *bias = ck_alloc(c, s->n, 0), *before = malloc(all * sizeof *before);
  float *packed = aligned_alloc(64, (w * k + 16) * sizeof(float) / 64 * 64 + 64);
  int32_t *at = malloc(s->m * sizeof *at);
  if (!packed || !before || !at) exit(6);
  ck_fill(c, a, (s->m - 1) * lda + width, s->fill);
  ck_fill(c, b, k * s->n, s->fill);
  ck_fill(c, r, (s->m - 1) * ldr + s->n, s->fill);
  ck_fill(c, bias, s->n, s->fill);
  for (size_t i = 0; i < s->m; i++) {
    at[i] = (int32_t)place_of(s, ldc, i);
    if (s->accumulate) ck_fill(c, y + at[i], s->n, s->fill);
  }
  memcpy(before, y, all * sizeof *before);
  hn_gemm_pack_b(panels, b, (ptrdiff_t)s->n, 1, k, s->n, 0, s->n, packed);
  const hn_strip t = {.a = a,
                      .lda = (ptrdiff_t)lda,
                      .b = packed,
                      .c = y,
                      .ldc = (ptrdiff_t)ldc,
                      .at = s->places ? at : NULL,
                      .m = s->m,
                      .k = k,
                      .segment = s->segment,
                      .skip = s->skip,
                      .n = s->n,
                      .accumulate = s->accumulate,
                      .flags = s->flags,
                      .lo = -0.25f,
                      .hi = 0.5f,
                      .slope = 0.125f,
                      .bias = bias,
                      .residual = s->flags & HN_EPI_RESIDUAL ? r : NULL,
                      .ldr = (ptrdiff_t)ldr,
                      .prefetch = s->ahead ? packed : NULL,
                      .prefetch_end = s->ahead ? packed + w * k * s->ahead / 3 : NULL,
                      .far = !s->places && s->ahead % 2};
  o->run(&t);
  for (size_t i = 0; i < s->m; i++)
    for (size_t j = 0; j < s->n; j++) {
      double acc = 0, mag = 0;
      for (size_t l = 0; l < k; l++) {
        const size_t in = l / s->segment * (s->segment + (size_t)s->skip) + l % s->segment;
        const double p = (double)a[i * lda + in] * b[l * s->n + j];
        acc += p, mag += fabs(p);
      }
      const size_t place = (size_t)at[i] + j;
      if (s->accumulate) acc += before[place], mag += fabs((double)before[place]);
      const double want = ck_epilogue(s->flags, acc, &mag, bias[j], r[i * ldr + j], t.lo, t.hi, t.slope);
      /* As of family "gemm": k roundings of products, k + 4 of sums; underflow k times. */
      const double bound = (double)(2 * k + 4) * CK_EPS * mag * (1 + 1e-3) + (double)(k + 4) * CK_TINY;
      ck_near(c, i * s->n + j, y[place], want, bound);
      before[place] = y[place];
    }
  /* What lies between rows is not touched. */
  ck_true(c, memcmp(before, y, all * sizeof *before) == 0, "wrote between rows");
  free(packed), free(before), free(at);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  const hn_strip_ops *o = k->ops;
  const struct hn_kernel *gemm = hn_kernel_find("gemm", "f32", k->isa);
  static const size_t pieces[] = {1, 1, 1, 3, 1, 2, 0}, segments[] = {1, 5, 16, 9, 33, 6, 1};
  static const uint32_t flags[] = {0,
                                   HN_EPI_BIAS,
                                   HN_EPI_BIAS | HN_EPI_CLAMP,
                                   HN_EPI_RESIDUAL | HN_EPI_LEAKY,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP,
                                   HN_EPI_RESIDUAL,
                                   HN_EPI_CLAMP | HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER,
                                   HN_EPI_RESIDUAL | HN_EPI_RESIDUAL_AFTER,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER};
  enum { FLAGS = sizeof flags / sizeof *flags };
  if (!gemm) exit(6);
  const hn_gemm_ops *panels = gemm->ops;
  ck_case(c, "panels");
  ck_true(c, o->nr == panels->nr && o->vw == panels->vw && o->mr == panels->mr, "of the gemm kernel's shape");
  size_t turn = 0;
  for (size_t m = 1; m <= 3 * o->mr + 1 && !ck_failed(c); m++)
    for (uint32_t n = 1; n <= o->nr; n++, turn++) {
      const size_t i = turn % 7, d = turn / 3;
      check_strip(c, o, panels,
                  &(strip_case){m, pieces[i], segments[i], n, flags[turn % FLAGS], turn % 5 == 0, turn % 2,
                                (ptrdiff_t)(turn % 3), (ptrdiff_t)(d % 3), (ptrdiff_t)(d % 7),
                                (ptrdiff_t)(turn % 4 ? 0 : 5), (enum ck_fill)(turn / 6 % CK_FILLS), d % 4});
    }
  for (size_t f = 0; f < FLAGS && !ck_failed(c); f++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (uint32_t i = 0; i < 8; i++) {
        const uint32_t n = i / 2 % 4 == 0   ? o->nr
                           : i / 2 % 4 == 1 ? o->vw
                           : i / 2 % 4 == 2 ? o->nr - o->vw / 2
                                            : hn_max(o->vw / 2, 1);
        check_strip(c, o, panels,
                    &(strip_case){2 * o->mr + 3, 1, 61, n, flags[f], i % 2, i % 2, 0, 3, 5, 7,
                                  (enum ck_fill)fill, 3});
      }
}

/* ------------------------------------------------------------------ bench */

static void call(void *p) {
  const hn_strip *s = p;
  ((const hn_strip_ops *)(const void *)s->residual)->run(s); /* nothing adds it */
}

static double seconds_of(const struct hn_kernel *k, size_t m, size_t depth, uint32_t n) {
  static _Alignas(64) float memory[3][1 << 17];
  static float bias[32];
  for (size_t i = 0; i < 1 << 17; i++) memory[0][i] = memory[1][i] = (float)(i % 13) * 0.1f - 0.6f;
  hn_strip s = {.a = memory[0],
                .lda = (ptrdiff_t)depth,
                .b = memory[1],
                .c = memory[2],
                .ldc = (ptrdiff_t)n,
                .m = m,
                .k = depth,
                .segment = depth,
                .n = n,
                .flags = HN_EPI_BIAS | HN_EPI_CLAMP,
                .hi = 6,
                .bias = bias,
                .residual = k->ops};
  return ck_time(call, &s);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    size_t m, k;
    uint32_t columns; /* eighths of a panel */
  } shape[] = {{"112 x 16, panel", 112, 16, 8},    {"112 x 24, panel", 112, 24, 8},
               {"112 x 64, panel", 112, 64, 8},    {"49 x 160, panel", 49, 160, 8},
               {"112 x 32, half", 112, 32, 4},     {"112 x 96, 3/4", 112, 96, 6},
               {"112 x 96, a quarter", 112, 96, 2}};
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    const hn_strip_ops *o = k->ops;
    const uint32_t n = hn_max(o->nr * shape[i].columns / 8, 1);
    const double flops = 2.0 * (double)(shape[i].m * shape[i].k * n);
    const ck_work work = {.flops = flops,
                          .read = 4.0 * (double)(shape[i].m * shape[i].k + shape[i].k * n),
                          .written = 4.0 * (double)(shape[i].m * n)};
    ck_bench_line(c, shape[i].label, seconds_of(k, shape[i].m, shape[i].k, n), &work,
                  k != scalar ? seconds_of(scalar, shape[i].m, shape[i].k, n) : 0);
  }
}

const ck_family ck_family_strip = {"strip", check, bench};
