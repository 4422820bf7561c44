/* Family "gemm": the tile kernel alone over all tile sizes, then through packing and the convolution driver.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/features.h"
#include "check.h"
#include "conv_cases.h"
#include "gemm_matmul.h"
#include "gemm_oracle.h"

typedef struct tile_case {
  uint32_t m, n;
  size_t k;
  uint32_t flags, accumulate;
  ptrdiff_t da, dc, dr; /* extra distance between rows */
  enum ck_fill fill;
  size_t ahead; /* thirds of the weights that are asked for meanwhile */
} tile_case;

static void check_tile(ck *c, const hn_gemm_ops *o, const tile_case *s) {
  size_t w = hn_gemm_panel_width(o, s->n, 0), k = s->k;
  size_t lda = k + (size_t)s->da, ldc = s->n + (size_t)s->dc, ldr = s->n + (size_t)s->dr;
  ck_case(c, "tile m=%u n=%u k=%zu flags=%u acc=%u ld+%td/%td/%td fill=%s", s->m, s->n, k, s->flags,
          s->accumulate, s->da, s->dc, s->dr, ck_fill_name(s->fill));
  /* The last row of A, C and the residual ends at the guard page. */
  float *a = ck_alloc(c, (s->m - 1) * lda + k, s->da ? 1 : 0), *b = ck_alloc(c, k * s->n, 0);
  float *y = ck_alloc(c, (s->m - 1) * ldc + s->n, s->dc ? 3 : 0),
        *r = ck_alloc(c, (s->m - 1) * ldr + s->n, 0);
  float *bias = ck_alloc(c, s->n, 0);
  float *packed = aligned_alloc(64, (w * k + 16) * sizeof(float) / 64 * 64 + 64),
        *before = malloc(s->m * s->n * sizeof(float) + 1);
  if (!packed || !before) exit(6);
  ck_fill(c, a, (s->m - 1) * lda + k, s->fill);
  ck_fill(c, b, k * s->n, s->fill);
  ck_fill(c, r, (s->m - 1) * ldr + s->n, s->fill);
  ck_fill(c, bias, s->n, s->fill);
  if (s->accumulate)
    for (size_t i = 0; i < s->m; i++) {
      ck_fill(c, y + i * ldc, s->n, s->fill);
      memcpy(before + i * s->n, y + i * ldc, s->n * sizeof(float));
    }
  hn_gemm_pack_b(o, b, (ptrdiff_t)s->n, 1, k, s->n, 0, s->n, packed);
  hn_gemm_tile t = {.a = a,
                    .lda = (ptrdiff_t)lda,
                    .b = packed,
                    .c = y,
                    .ldc = (ptrdiff_t)ldc,
                    .k = k,
                    .segment = k,
                    .m = s->m,
                    .n = s->n,
                    .accumulate = s->accumulate,
                    .flags = s->flags,
                    .lo = -0.25f,
                    .hi = 0.5f,
                    .slope = 0.125f,
                    .bias = bias,
                    .residual = r,
                    .ldr = (ptrdiff_t)ldr,
                    .prefetch = s->ahead ? packed : NULL,
                    .prefetch_end = s->ahead ? packed + w * k * s->ahead / 3 : NULL};
  o->tile(&t);
  for (size_t i = 0; i < s->m; i++)
    for (size_t j = 0; j < s->n; j++) {
      double acc = 0, mag = 0;
      for (size_t l = 0; l < k; l++) {
        double p = (double)a[i * lda + l] * b[l * s->n + j];
        acc += p, mag += fabs(p);
      }
      if (s->accumulate) acc += before[i * s->n + j], mag += fabs((double)before[i * s->n + j]);
      double want = ck_epilogue(s->flags, acc, &mag, bias[j], r[i * ldr + j], t.lo, t.hi, t.slope);
      /* k roundings of products and k + 4 of sums, each at most eps of the running magnitude; underflow k
       * times. */
      double bound = (double)(2 * k + 4) * CK_EPS * mag * (1 + 1e-3) + (double)(k + 4) * CK_TINY;
      ck_near(c, i * s->n + j, y[i * ldc + j], want, bound);
    }
  free(packed);
  free(before);
  ck_release_all(c);
}

static void check_tiles(ck *c, const hn_gemm_ops *o) {
  static const size_t ks[] = {0, 1, 2, 3, 7, 16, 33, 127};
  static const uint32_t flags[] = {0,
                                   HN_EPI_BIAS,
                                   HN_EPI_BIAS | HN_EPI_CLAMP,
                                   HN_EPI_RESIDUAL | HN_EPI_LEAKY,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP,
                                   HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER};
  size_t turn = 0;
  for (uint32_t m = 1; m <= o->mr && !ck_failed(c); m++)
    for (uint32_t n = 1; n <= o->nr; n++)
      for (size_t i = 0; i < sizeof ks / sizeof *ks; i++, turn++) {
        tile_case s = {m,
                       n,
                       ks[i],
                       flags[turn % 6],
                       turn % 5 == 0,
                       (ptrdiff_t)(turn % 3),
                       (ptrdiff_t)(turn % 7),
                       (ptrdiff_t)(turn % 4 ? 0 : 5),
                       (enum ck_fill)(turn / 6 % CK_FILLS),
                       turn / 2 % 4};
        check_tile(c, o, &s);
      }
  for (size_t f = 0; f < 6; f++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (uint32_t acc = 0; acc < 2; acc++) {
        tile_case s = {o->mr, o->nr, 61, flags[f], acc, 3, 5, 7, (enum ck_fill)fill, 3};
        check_tile(c, o, &s);
        s.n = o->nr > 1 ? o->nr - 1 : 1;
        check_tile(c, o, &s);
      }
}

/* Packing of a strided B is a move: compare exactly. */
static void check_pack(ck *c, const hn_gemm_ops *o) {
  for (size_t n = 1; n <= 3 * o->nr + 1; n += n < 4 ? 1 : o->nr / 2 + 1)
    for (size_t k = 1; k < 40; k += 9)
      for (int trans = 0; trans < 2; trans++) {
        ck_case(c, "pack k=%zu n=%zu trans=%d", k, n, trans);
        float *b = ck_alloc(c, k * n, 0), *p = ck_alloc(c, hn_gemm_packed_size(o, n, k), 0);
        ck_fill(c, b, k * n, CK_RANDOM);
        ptrdiff_t sk = trans ? 1 : (ptrdiff_t)n, sn = trans ? (ptrdiff_t)k : 1;
        hn_gemm_pack_b(o, b, sk, sn, k, n, 0, n, p);
        for (size_t n0 = 0; n0 < n; n0 += o->nr) {
          size_t w = hn_gemm_panel_width(o, n, n0);
          for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j < w; j++) {
              float want = n0 + j < n ? b[(ptrdiff_t)i * sk + (ptrdiff_t)(n0 + j) * sn] : 0;
              ck_same(c, i * n + n0 + j, p[n0 * k + i * w + j], want);
            }
        }
        ck_release_all(c);
      }
}

/* Packing of convolution weights is a move as well; taps turned round stand for a list of them. Transposed
 * convolutions' weights have their input channels outside: behind the last there is nothing to read. */
static void check_pack_weights(ck *c, const hn_gemm_ops *o) {
  static const int64_t taps_of[] = {1, 4, 9, 16, 25}, channels[] = {1, 3, 16, 21, 40};
  for (size_t t = 0; t < sizeof taps_of / sizeof *taps_of; t++)
    for (size_t q = 0; q < sizeof channels / sizeof *channels; q++)
      for (size_t n = 1; n <= 2 * o->nr + 17; n += o->nr / 2 + 5)
        for (int form = 0; form < 4; form++) {
          const bool listed = form & 1, outside = form & 2;
          const int64_t taps = taps_of[t], cin = channels[q], k = cin * taps;
          const int64_t s_co = outside ? taps : k, s_ci = outside ? (int64_t)n * taps : taps;
          int32_t list[25];
          for (int32_t i = 0; i < taps; i++) list[i] = (int32_t)taps - 1 - i;
          ck_case(c, "pack weights taps=%lld cin=%lld n=%zu listed=%d outside=%d", (long long)taps,
                  (long long)cin, n, listed, outside);
          float *w = ck_alloc(c, (size_t)k * n, 0), *p = ck_alloc(c, hn_gemm_packed_size(o, n, (size_t)k), 0);
          ck_fill(c, w, (size_t)k * n, CK_RANDOM);
          hn_gemm_pack_weights(o, w, s_co, s_ci, 1, cin, listed ? list : NULL, taps, (int64_t)n, p);
          for (size_t n0 = 0; n0 < n; n0 += o->nr) {
            const size_t width = hn_gemm_panel_width(o, n, n0);
            for (int64_t i = 0; i < k; i++)
              for (size_t j = 0; j < width; j++) {
                const int64_t tap = listed ? list[i / cin] : i / cin;
                const float want = n0 + j < n ? w[(int64_t)(n0 + j) * s_co + i % cin * s_ci + tap] : 0;
                ck_same(c, (size_t)i * n + n0 + j, p[n0 * (size_t)k + (size_t)i * width + j], want);
              }
          }
          ck_release_all(c);
        }
}

/* What a driver asks for changes no answer, so that only looking at each call tells: places in the weights,
 * the input or the residual, and, block by block of weights, all but the first. */
static struct watched {
  void (*tile)(const hn_gemm_tile *t);
  const float *w, *x, *w_end, *x_end;
  unsigned char *asked; /* weight i */
  bool wrong;
  uint32_t rows; /* of the largest tile */
  uint32_t meet; /* of the largest tile whose rows lie half a way of L1 apart, or a multiple of that */
  const float *r, *r_end;
  size_t added; /* values of the residual that were asked for */
} watched;

static void watch(const hn_gemm_tile *t) {
  if (t->prefetch_end && t->prefetch < t->prefetch_end) {
    const bool weights = t->prefetch >= watched.w && t->prefetch_end <= watched.w_end,
               input = t->prefetch >= watched.x && t->prefetch < watched.x_end,
               residual = t->prefetch >= watched.r && t->prefetch_end <= watched.r_end;
    if (!weights && !input && !residual) watched.wrong = true;
    if (residual) watched.added += (size_t)(t->prefetch_end - t->prefetch);
    if (weights)
      memset(watched.asked + (t->prefetch - watched.w), 1, (size_t)(t->prefetch_end - t->prefetch));
  }
  if (t->m > watched.rows) watched.rows = t->m;
  if (t->lda % 512 == 0 && t->m > watched.meet) watched.meet = t->m;
  watched.tile(t);
}

/* Where tasks walk all blocks: whatever is not in the first one. */
static void check_asked(ck *c, const hn_conv *g, const hn_gemm_ops *o) {
  if (watched.wrong) ck_near(c, 0, 1, 0, 0);
  if (g->groups != 1 || g->n_tasks != 1 || g->block_tiles < 2) return;
  for (int64_t n = 0; n < g->cout; n += o->nr) {
    const int64_t width = (int64_t)hn_gemm_panel_width(o, (size_t)g->cout, (size_t)n);
    for (int64_t i = (n < g->first_columns ? g->kc : 0) * width; i < g->k * width; i++)
      if (!watched.asked[n * g->k + i]) ck_near(c, (size_t)(n * g->k + i), 1, 0, 0);
  }
}

static const hn_strip_ops *strips; /* what check_conv lets the driver have */

/* idle: 0, or as hn_conv.idle says it; how far taps reach is known then, too. */
static void check_conv(ck *c, const hn_gemm_ops *o, const ck_conv_case *s, double idle, enum ck_fill fill,
                       size_t l1, size_t l2) {
  int64_t out[3], taps = 1, pixels = s->batch, in_pixels = s->batch;
  for (int i = 0; i < 3; i++) {
    out[i] =
        (s->in[i] + s->pad[i] + s->pad_end[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    taps *= s->kernel[i], pixels *= out[i], in_pixels *= s->in[i];
  }
  int64_t k = taps * s->cin, ip = s->groups * s->cin + s->extra_in, op = s->groups * s->cout + s->extra_out,
          oc = s->groups * s->cout;
  ck_case(c,
          "conv n%lld g%lld %lld->%lld in %lldx%lldx%lld k %lldx%lldx%lld s%lld,%lld d%lld p%lld "
          "pitch+%lld/%lld fill=%s l2=%zu",
          (long long)s->batch, (long long)s->groups, (long long)s->cin, (long long)s->cout,
          (long long)s->in[0], (long long)s->in[1], (long long)s->in[2], (long long)s->kernel[0],
          (long long)s->kernel[1], (long long)s->kernel[2], (long long)s->stride[1], (long long)s->stride[2],
          (long long)s->dilation[2], (long long)s->pad[2], (long long)s->extra_in, (long long)s->extra_out,
          ck_fill_name(fill), l2);
  size_t nx = (size_t)(in_pixels ? (in_pixels - 1) * ip + s->groups * s->cin : 0),
         ny = (size_t)(pixels ? (pixels - 1) * op + oc : 0);
  float *x = ck_alloc(c, nx, 0), *y = ck_alloc(c, ny, 0), *r = ck_alloc(c, ny, 0),
        *bias = ck_alloc(c, (size_t)oc, 0);
  float *w = ck_alloc(c, (size_t)(oc * k), 0);
  ck_fill(c, x, nx, fill);
  ck_fill(c, w, (size_t)(oc * k), fill);
  ck_fill(c, r, ny, fill);
  ck_fill(c, bias, (size_t)oc, fill);
  hn_conv g = {.batch = s->batch,
               .groups = s->groups,
               .cin = s->cin,
               .cout = s->cout,
               .in_pitch = ip,
               .in_k = 1,
               .idle = idle,
               .in_batch = s->in[0] * s->in[1] * s->in[2] * ip,
               .k = k,
               .out = {out[0] * out[1] * out[2] * op, out[1] * out[2] * op, out[2] * op, op}};
  bool merge = ip == s->cin && s->dilation[2] == 1;
  hn_tap_run *runs = malloc((size_t)taps * sizeof *runs);
  if (!runs) exit(6);
  for (int i = 0; i < 3; i++) g.in[i] = s->in[i], g.grid[i] = out[i], g.stride[i] = s->stride[i];
  for (int64_t z = 0; z < s->kernel[0]; z++)
    for (int64_t v = 0; v < s->kernel[1]; v++)
      for (int64_t u = 0; u < (merge ? 1 : s->kernel[2]); u++)
        runs[g.n_runs++] =
            (hn_tap_run){(int32_t)(z * s->dilation[0] - s->pad[0]), (int32_t)(v * s->dilation[1] - s->pad[1]),
                         (int32_t)(u * s->dilation[2] - s->pad[2]), merge ? (uint32_t)s->kernel[2] : 1};
  g.shifted = s->pad[0] || s->pad[1] || s->pad[2];
  hn_conv_set_lines(&g, s->kernel, s->dilation, !merge);
  for (int i = 0; idle > 0 && i < 2; i++)
    g.pad[i] = s->pad[i + 1], g.window[i] = (s->kernel[i + 1] - 1) * s->dilation[i + 1] + 1;
  hn_conv_plan(&g, o, 2, l1, l2);
  size_t psize = hn_gemm_packed_size(o, (size_t)s->cout, (size_t)k);
  float *packed = aligned_alloc(64, (psize * (size_t)s->groups * 4 + 127) / 64 * 64),
        *scratch = aligned_alloc(64, (hn_conv_scratch(&g, o) * 8 + 63) / 64 * 64);
  if (!packed || !scratch) exit(6);
  /* w is [tap][cin][groups * cout] here */
  for (int64_t i = 0; i < s->groups; i++)
    hn_gemm_pack_b(o, w + i * s->cout, oc, 1, (size_t)k, (size_t)s->cout, 0, (size_t)s->cout,
                   packed + (size_t)i * psize);
  hn_epilogue e = {.flags = s->flags,
                   .lo = -0.25f,
                   .hi = 0.5f,
                   .slope = 0.125f,
                   .bias = bias,
                   .residual = r,
                   .residual_view = g.out};
  if (s->post)
    e.rows = hn_post_find(HN_ISA_SCALAR), e.n_post = 2,
    e.post[0] = (hn_post){.kind = HN_POST_ACT, .act = ck_square, .p = {2.0f}},
    e.post[1] = (hn_post){.kind = HN_POST_MUL, .v = r, .view = g.out};
  hn_gemm_ops looked_at = *o;
  looked_at.tile = watch;
  const size_t weights = psize * (size_t)s->groups;
  watched = (struct watched){.tile = o->tile,
                             .w = packed,
                             .x = x,
                             .w_end = packed + weights,
                             .x_end = x + nx,
                             .asked = calloc(weights + 1, 1),
                             .r = r,
                             .r_end = r + ny};
  if (!watched.asked) exit(6);
  hn_conv_args args = {&g, &looked_at, runs, x, packed, 0, y, &e, scratch, strips};
  hn_conv_exec(&args, ck_serial, NULL);
  check_asked(c, &g, o);
  free(watched.asked);
  size_t index = 0;
  for (int64_t n = 0; n < s->batch; n++)
    for (int64_t z = 0; z < out[0]; z++)
      for (int64_t v = 0; v < out[1]; v++)
        for (int64_t u = 0; u < out[2]; u++)
          for (int64_t q = 0; q < oc; q++, index++) {
            double acc = 0, mag = 0;
            int64_t grp = q / s->cout;
            for (int64_t t = 0; t < taps; t++) {
              int64_t iz = z * s->stride[0] + t / (s->kernel[1] * s->kernel[2]) * s->dilation[0] - s->pad[0];
              int64_t iy = v * s->stride[1] + t / s->kernel[2] % s->kernel[1] * s->dilation[1] - s->pad[1];
              int64_t ix = u * s->stride[2] + t % s->kernel[2] * s->dilation[2] - s->pad[2];
              bool in = iz >= 0 && iz < s->in[0] && iy >= 0 && iy < s->in[1] && ix >= 0 && ix < s->in[2];
              const float *px =
                  in ? x + (((n * s->in[0] + iz) * s->in[1] + iy) * s->in[2] + ix) * ip + grp * s->cin : NULL;
              for (int64_t ci = 0; ci < s->cin; ci++) {
                /* padding multiplies by zero: Inf and NaN weights make NaN there, as in the kernel */
                double p = (in ? (double)px[ci] : 0.0) * w[(t * s->cin + ci) * oc + q];
                acc += p, mag += fabs(p);
              }
            }
            int64_t at = hn_view_at(&g.out, n, z, v, u) + q;
            double want = ck_epilogue(s->flags, acc, &mag, bias[q], r[at], e.lo, e.hi, e.slope);
            double bound = (double)(2 * k + 4) * CK_EPS * mag * (1 + 1e-3) + (double)(k + 4) * CK_TINY;
            if (s->post) {
              /* derivative of 2 x^2 r, and its three roundings */
              bound = 2 * (2 * fabs(want) * bound + bound * bound) * fabs((double)r[at]);
              want = 2.0 * want * want * r[at];
              bound += 4 * CK_EPS * fabs(want) + 4 * CK_TINY;
            }
            ck_near(c, index, y[at], want, bound);
          }
  free(runs);
  free(packed);
  free(scratch);
  ck_release_all(c);
}

/* Rows 4 KB apart: no more of them in a tile than L1 has ways, here one less than the kernel takes. */
static void check_rows_that_meet(ck *c, const hn_gemm_ops *o) {
  const ck_conv_case rows = {.batch = 1,
                             .groups = 1,
                             .cin = 1024,
                             .cout = o->nr + 1,
                             .in = {1, 1, 5 * o->mr},
                             .kernel = {1, 1, 1},
                             .stride = {1, 1, 1},
                             .dilation = {1, 1, 1},
                             .flags = HN_EPI_BIAS | HN_EPI_RESIDUAL};
  check_conv(c, o, &rows, 0, CK_RANDOM, (o->mr - 1) * (size_t)4096, 1u << 20);
  if (watched.rows >= o->mr) ck_near(c, watched.rows, 1, 0, 0);
}

/* The same where L1 has 8 ways: rows are copied to another distance, all of a block of tiles at once, or,
 * where that is much beyond L2, tile by tile; strided rows where a tile has more of them than a set has ways.
 */
static void check_copied_rows(ck *c, const hn_gemm_ops *o) {
  const int64_t many = 4 * o->nr, n = 3 * o->mr + 2;
  const ck_conv_case cases[] = {
      {1, 1, 512, many + 3, {1, 1, 30 * o->mr}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .flags = HN_EPI_BIAS},
      {2, 1, 1024, many, {1, 3, n}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .extra_out = 5, .flags = HN_EPI_BIAS},
      {2, 2, 256, many, {1, 2, n}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .flags = HN_EPI_RESIDUAL},
      {2, 1, 512, many, {1, 3, 2 * n}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, .flags = HN_EPI_BIAS, .post = true},
      {1, 2, 512, many, {3, 2, n}, {1, 1, 1}, {2, 1, 1}, {1, 1, 1}, .extra_out = 3, .flags = HN_EPI_CLAMP},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t l2 = 16u << 10; l2 <= 1u << 20; l2 <<= 6) {
      check_conv(c, o, &cases[i], 0, CK_RANDOM, 32u << 10, l2);
      if (watched.meet > 8) ck_near(c, watched.meet, 1, 0, 0);
    }
}

/* Of a residual, which comes from afar, the rows that the next tile adds are asked for: all but those of the
 * first tile and of the last. */
static void check_residual_ahead(ck *c, const hn_gemm_ops *o) {
  const int64_t tiles = 2 * (1100 / o->mr + 1); /* enough for two tasks that finish a tile at a time */
  const ck_conv_case rows = {.batch = 1,
                             .groups = 1,
                             .cin = 7,
                             .cout = 16 * o->nr,
                             .in = {1, 1, tiles * o->mr},
                             .kernel = {1, 1, 1},
                             .stride = {1, 1, 1},
                             .dilation = {1, 1, 1},
                             .flags = HN_EPI_BIAS | HN_EPI_RESIDUAL};
  check_conv(c, o, &rows, 0, CK_RANDOM, 48u << 10, 1u << 20);
  const size_t all = (size_t)((tiles - 2) * o->mr * rows.cout);
  if (watched.added != all) ck_near(c, watched.added, (double)watched.added, (double)all, 0);
}

/* Lines of which many taps lie outside of the image: what a whole tile finds there is left out, which must be
 * all that is. K in one block and in several, tiles of a line and over the ends of lines, lines without any
 * tap. */
static void check_idle_taps(ck *c, const hn_gemm_ops *o) {
  /* clang-format off */
  static const ck_conv_case cases[] = {
      {2, 1, 40, 33, {1, 14, 15}, {1, 3, 3}, {1, 1, 1}, {1, 12, 12}, {0, 12, 12}, {0, 12, 12}, 0, 0, HN_EPI_BIAS, false},
      {1, 1, 24, 20, {2, 7, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
      {1, 2, 33, 19, {3, 5, 30}, {3, 5, 2}, {2, 1, 1}, {1, 2, 3}, {1, 4, 3}, {1, 4, 0}, 3, 2, HN_EPI_BIAS, true},
      {1, 1, 50, 17, {1, 3, 4}, {1, 5, 5}, {1, 2, 1}, {1, 3, 2}, {0, 9, 4}, {0, 9, 4}, 0, 0, HN_EPI_BIAS, false},
      /* read where they lie, but for lines that are left out: slices, rows, rows of slices */
      {2, 1, 16, 20, {5, 3, 30}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, 0, 0, HN_EPI_BIAS | HN_EPI_RESIDUAL, false},
      {1, 1, 9, 33, {8, 2, 17}, {7, 1, 1}, {2, 1, 1}, {1, 1, 1}, {3, 0, 0}, {3, 0, 0}, 0, 1, HN_EPI_BIAS, true},
      {1, 1, 5, 7, {3, 4, 40}, {2, 1, 1}, {1, 1, 1}, {4, 1, 1}, {3, 0, 0}, {2, 0, 0}, 0, 0, HN_EPI_BIAS, false},
      {1, 1, 300, 40, {1, 9, 15}, {1, 7, 1}, {1, 1, 1}, {1, 1, 1}, {0, 3, 0}, {0, 3, 0}, 0, 0, HN_EPI_BIAS, false},
      {2, 2, 20, 9, {1, 6, 33}, {1, 3, 2}, {1, 2, 1}, {1, 1, 3}, {0, 1, 0}, {0, 1, 0}, 0, 0, HN_EPI_BIAS, true},
      {2, 1, 12, 35, {4, 7, 30}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}, 0, 0, HN_EPI_BIAS | HN_EPI_CLAMP, false},
      {1, 1, 8, 10, {5, 6, 31}, {3, 2, 3}, {2, 2, 1}, {1, 3, 1}, {2, 1, 1}, {1, 2, 1}, 0, 0, HN_EPI_BIAS, false},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t l1 = 2u << 10; l1 <= 48u << 10; l1 *= 24)
      check_conv(c, o, &cases[i], 0.5, CK_RANDOM, l1, 1u << 20);
}

/* Rows that lie evenly, by strips: one panel and several, few tiles at a time and all of them, images with
 * gaps between pixels, with a residual and with functions behind, and what strips do not take. */
static void check_strips(ck *c, const struct hn_kernel *k) {
  const hn_gemm_ops *o = k->ops;
  const int64_t n = 3 * o->mr + 2, panel = o->nr;
  const ck_conv_case cases[] = {
      {1, 1, 32, panel, {1, 9, n}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .flags = HN_EPI_BIAS | HN_EPI_CLAMP},
      {2,
       1,
       300,
       2 * panel + 3,
       {1, 3, n},
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       .flags = HN_EPI_BIAS | HN_EPI_RESIDUAL},
      {2,
       2,
       5,
       7,
       {1, 1, 2 * n},
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       .extra_in = 3,
       .extra_out = 2,
       .flags = HN_EPI_RESIDUAL | HN_EPI_LEAKY | HN_EPI_RESIDUAL_AFTER},
      {2, 1, 24, panel + 9, {1, 1, n}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .flags = HN_EPI_BIAS, .post = true},
      {1, 1, 24, panel - 1, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, .flags = HN_EPI_BIAS, .post = true},
      {1, 1, 8, panel, {1, 8, n}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, .flags = HN_EPI_BIAS},
  };
  strips = hn_strip_find(k->isa);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      check_conv(c, o, &cases[i], 0, (enum ck_fill)fill, 48u << 10, 1u << 20);
  strips = NULL;
}

static void check(ck *c, const struct hn_kernel *k) {
  const hn_gemm_ops *o = k->ops;
  check_strips(c, k);
  check_tiles(c, o);
  check_pack(c, o);
  check_pack_weights(c, o);
  ck_matmul(c, k->isa);
  for (size_t i = 0; i < ck_n_conv_cases && !ck_failed(c); i++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      check_conv(c, o, &ck_conv_cases[i], 0, (enum ck_fill)fill, 48u << 10, 1u << 20);
      check_conv(c, o, &ck_conv_cases[i], 0, (enum ck_fill)fill, 2u << 10,
                 16u << 10); /* many K blocks and passes */
    }
  /* Blocks of one, two and four panels, two of K, and rows in several blocks. */
  const ck_conv_case wide = {.batch = 1,
                             .groups = 1,
                             .cin = 70,
                             .cout = 9 * o->nr - 1,
                             .in = {1, 1, 30 * o->mr},
                             .kernel = {1, 1, 1},
                             .stride = {1, 1, 1},
                             .dilation = {1, 1, 1}};
  check_conv(c, o, &wide, 0, CK_RANDOM, 2u << 10, 256u << 10);
  check_rows_that_meet(c, o);
  check_copied_rows(c, o);
  check_residual_ahead(c, o);
  check_idle_taps(c, o);
}

/* ---- bench: one thread, through the driver */
typedef struct bench_arg {
  hn_conv_args args;
} bench_arg;

static void bench_call(void *p) { hn_conv_exec(&((bench_arg *)p)->args, ck_alone, NULL); }

static double bench_one(const struct hn_kernel *k, int64_t cin, int64_t cout, int64_t h, int64_t w,
                        int64_t kh, int64_t stride) {
  const hn_gemm_ops *o = k->ops;
  const hn_cpu_info *cpu = hn_cpu();
  int64_t oh = (h + 2 * (kh / 2) - kh) / stride + 1, ow = (w + 2 * (kh / 2) - kh) / stride + 1;
  if (h == 1) oh = 1;
  int64_t kw = kh;
  hn_conv g = {.batch = 1,
               .groups = 1,
               .cin = cin,
               .cout = cout,
               .in = {1, h, w},
               .grid = {1, oh, ow},
               .stride = {1, stride, stride},
               .in_pitch = cin,
               .in_batch = h * w * cin,
               .in_k = 1,
               .out = {oh * ow * cout, oh * ow * cout, ow * cout, cout},
               .n_runs = kh,
               .k = kh * kw * cin};
  hn_tap_run runs[16];
  for (int64_t i = 0; i < kh; i++)
    runs[i] = (hn_tap_run){0, (int32_t)(i - kh / 2), (int32_t)(-(kh / 2)), (uint32_t)kw};
  g.run_step = w * cin;
  hn_conv_plan(&g, o, 1, cpu->l1d, cpu->l2);
  size_t nx = (size_t)(h * w * cin), ny = (size_t)(oh * ow * cout),
         nw = hn_gemm_packed_size(o, (size_t)cout, (size_t)g.k);
  float *mem = aligned_alloc(4096, ((nx + ny + nw + hn_conv_scratch(&g, o) + (size_t)cout) * 4 + 5 * 4096) /
                                       4096 * 4096);
  if (!mem) exit(6);
  float *x = mem, *y = x + (nx + 1023) / 1024 * 1024, *p = y + (ny + 1023) / 1024 * 1024,
        *scratch = p + (nw + 1023) / 1024 * 1024, *bias = scratch + hn_conv_scratch(&g, o);
  for (size_t i = 0; i < nx; i++) x[i] = (float)(i % 13) * 0.1f - 0.6f;
  for (size_t i = 0; i < nw; i++) p[i] = (float)(i % 11) * 0.1f - 0.5f;
  for (int64_t i = 0; i < cout; i++) bias[i] = 0.5f;
  hn_epilogue e = {.flags = HN_EPI_BIAS | HN_EPI_CLAMP, .lo = 0, .hi = INFINITY, .bias = bias};
  bench_arg b = {{&g, o, runs, x, p, 0, y, &e, scratch, hn_strip_find(k->isa)}};
  double t = ck_time(bench_call, &b);
  free(mem);
  return t;
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    int64_t cin, cout, h, w, kh, stride;
  } shape[] = {
      {"conv 7x7s2 3->64 224", 3, 64, 224, 224, 7, 2},    {"conv 3x3 3->32 416", 3, 32, 416, 416, 3, 1},
      {"conv 1x1 64->256 56", 64, 256, 56, 56, 1, 1},     {"conv 1x1 256->64 56", 256, 64, 56, 56, 1, 1},
      {"conv 3x3 64->64 56", 64, 64, 56, 56, 3, 1},       {"conv 3x3 128->128 28", 128, 128, 28, 28, 3, 1},
      {"conv 3x3s2 256->256 28", 256, 256, 28, 28, 3, 2}, {"conv 3x3 256->256 14", 256, 256, 14, 14, 3, 1},
      {"conv 3x3 512->512 7", 512, 512, 7, 7, 3, 1},      {"conv 1x1 1024->256 14", 1024, 256, 14, 14, 1, 1},
      {"conv 3x3 32->64s2 416", 32, 64, 416, 416, 3, 2},  {"conv 3x3 256->512 26", 256, 512, 26, 26, 3, 1},
      {"conv 3x3 512->1024 13", 512, 1024, 13, 13, 3, 1}, {"conv 1x1 16->96 112", 16, 96, 112, 112, 1, 1},
      {"conv 1x1 96->24 56", 96, 24, 56, 56, 1, 1},       {"conv 1x1 576->96 14", 576, 96, 14, 14, 1, 1},
      {"gemm 128x768x768", 768, 768, 1, 128, 1, 1},       {"gemm 128x3072x768", 768, 3072, 1, 128, 1, 1},
      {"gemm 128x768x3072", 3072, 768, 1, 128, 1, 1},     {"gemv 1x1000x2048", 2048, 1000, 1, 1, 1, 1}};
  const struct hn_kernel *scalar = hn_kernel_find(k->family, k->role, HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    int64_t s = shape[i].stride, oh = (shape[i].h + s - 1) / s, ow = (shape[i].w + s - 1) / s,
            kh = shape[i].kh;
    double seconds = bench_one(k, shape[i].cin, shape[i].cout, shape[i].h, shape[i].w, kh, s);
    double flops = 2.0 * (double)(oh * ow * shape[i].cin * shape[i].cout * kh * kh);
    const ck_work work = {.flops = flops,
                          .read = 4.0 * (double)(shape[i].h * shape[i].w * shape[i].cin +
                                                 kh * kh * shape[i].cin * shape[i].cout),
                          .written = 4.0 * (double)(oh * ow * shape[i].cout)};
    double slow = k != scalar && i % 4 == 3
                      ? bench_one(scalar, shape[i].cin, shape[i].cout, shape[i].h, shape[i].w, kh, s)
                      : 0;
    ck_bench_line(c, shape[i].label, seconds, &work, slow);
  }
}

const ck_family ck_family_gemm = {"gemm", check, bench};
