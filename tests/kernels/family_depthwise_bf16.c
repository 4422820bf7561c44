/* Family "depthwise_bf16": rows of one panel from pairs of bf16 to bf16, against a double oracle. The chain
 * that calls them is tested by check_chain. */
#include <math.h>
#include <stdlib.h>

#include "backends/cpu/kernels/depthwise_bf16/depthwise_bf16.h"
#include "backends/cpu/kernels/post/epilogue.h"
#include "base/half.h"
#include "check.h"

enum { PANEL = HN_DEPTHWISE_PANEL, MAX_ROWS = 7 };

typedef struct shape {
  uint32_t rows, taps;
  int64_t stride, dilation, n;
  uint32_t channels, flags;
} shape;

static uint16_t *alloc16(ck *c, size_t n) { return (uint16_t *)(void *)ck_alloc(c, (n + 1) / 2, 0); }

/* Where channel j of a pixel lies among its pairs. */
static size_t place(size_t j) { return j < 16 ? 2 * j : 2 * (j - 16) + 1; }

/* What a result in bf16 may differ by from one of f32, and where it is infinite. */
static double stored(float got, double want, double *bound) {
  *bound += 0x1p-8 * (fabs(want) + *bound) + 0x1p-126;
  return isinf(got) && fabs(want) + *bound >= 0x1.fep127 && (got > 0) == (want > 0) ? got : want;
}

static double epilogue(const hn_depthwise_bf16_row *r, double acc) {
  if (r->flags & HN_EPI_CLAMP) return isnan(acc) ? acc : acc < r->lo ? r->lo : acc > r->hi ? r->hi : acc;
  return r->flags & HN_EPI_LEAKY && acc < 0 ? acc * r->slope : acc;
}

static void check_row(ck *c, const hn_depthwise_bf16_ops *o, const shape *s, enum ck_fill fill) {
  ck_case(c, "depthwise_bf16 %ux%u s%lld d%lld n%lld c%u flags=%u fill=%s", s->rows, s->taps,
          (long long)s->stride, (long long)s->dilation, (long long)s->n, s->channels, s->flags,
          ck_fill_name(fill));
  const size_t width = (size_t)((s->n - 1) * s->stride + (s->taps - 1) * s->dilation + 1);
  const size_t taps = (size_t)s->rows * s->taps, tap = PANEL + 16;
  const uint16_t *rows[MAX_ROWS];
  float *x[MAX_ROWS];
  for (uint32_t v = 0; v < s->rows; v++) {
    x[v] = ck_alloc(c, width * PANEL, 0);
    ck_fill(c, x[v], width * PANEL, fill);
    uint16_t *to = alloc16(c, width * PANEL);
    for (size_t i = 0; i < width * PANEL; i++) {
      float *value = x[v] + i;
      if (i % PANEL >= s->channels) *value = 0;
      const uint16_t half = hn_f32_to_bf16(*value);
      to[i / PANEL * PANEL + place(i % PANEL)] = half, *value = hn_bf16_to_f32(half);
    }
    rows[v] = to;
  }
  float *w = ck_alloc(c, taps ? (taps - 1) * tap + PANEL : 1, 0), *bias = ck_alloc(c, s->channels, 0);
  if (taps) ck_fill(c, w, (taps - 1) * tap + PANEL, fill);
  ck_fill(c, bias, s->channels, fill);
  for (size_t t = 0; t < taps; t++)
    for (size_t j = s->channels; j < PANEL; j++) w[t * tap + j] = 0;
  uint16_t *y = alloc16(c, (size_t)s->n * PANEL);
  const hn_depthwise_bf16_row r = {.x = rows,
                                   .w = w,
                                   .w_tap = (int64_t)tap,
                                   .rows = s->rows,
                                   .taps = s->taps,
                                   .stride = s->stride,
                                   .dilation = s->dilation,
                                   .y = y,
                                   .n = s->n,
                                   .channels = s->channels,
                                   .flags = s->flags,
                                   .lo = -0.25f,
                                   .hi = 0.5f,
                                   .slope = 0.125f,
                                   .bias = bias};
  o->row(&r);
  for (size_t i = 0; i < (size_t)s->n; i++)
    for (size_t j = 0; j < PANEL; j++) {
      double acc = s->flags & HN_EPI_BIAS && j < s->channels ? bias[j] : 0, mag = fabs(acc);
      for (size_t t = 0; t < taps; t++) {
        const size_t pixel = i * (size_t)s->stride + t % s->taps * (size_t)s->dilation;
        const double p = (double)x[t / s->taps][pixel * PANEL + j] * w[t * tap + j];
        acc += p, mag += fabs(p);
      }
      const float got = hn_bf16_to_f32(y[i * PANEL + j]);
      double bound = (double)(2 * taps + 4) * CK_EPS * mag * (1 + 1e-3) + (double)(2 * taps + 4) * CK_TINY;
      double want = epilogue(&r, acc);
      want = stored(got, want, &bound);
      ck_near(c, i * PANEL + j, got, want, bound);
    }
  ck_release_all(c);
}

static void check_pair(ck *c, const hn_depthwise_bf16_ops *o, size_t pixels, size_t n, size_t more) {
  ck_case(c, "pair %zu pixels, %zu channels of %zu", pixels, n, n + more);
  uint16_t *x = alloc16(c, (pixels - 1) * (n + more) + n), *to = alloc16(c, pixels * PANEL);
  for (size_t i = 0; i < (pixels - 1) * (n + more) + n; i++) x[i] = (uint16_t)ck_random(c);
  o->pair(x, (ptrdiff_t)(n + more), pixels, n, to);
  for (size_t i = 0; i < pixels; i++)
    for (size_t j = 0; j < PANEL; j++)
      ck_true(c, to[i * PANEL + place(j)] == (j < n ? x[i * (n + more) + j] : 0), "a channel in its place");
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const shape shapes[] = {{3, 3, 1, 1, 0, 0, 0}, {3, 3, 2, 1, 0, 0, 0}, {2, 3, 1, 1, 0, 0, 0},
                                 {2, 3, 2, 1, 0, 0, 0}, {5, 5, 1, 1, 0, 0, 0}, {4, 5, 2, 1, 0, 0, 0},
                                 {3, 3, 1, 2, 0, 0, 0}, {3, 3, 3, 1, 0, 0, 0}, {7, 7, 1, 1, 0, 0, 0},
                                 {1, 4, 2, 3, 0, 0, 0}, {1, 3, 1, 1, 0, 0, 0}, {0, 3, 1, 1, 0, 0, 0}};
  static const uint32_t flags[] = {0, HN_EPI_BIAS, HN_EPI_BIAS | HN_EPI_CLAMP, HN_EPI_BIAS | HN_EPI_LEAKY,
                                   HN_EPI_CLAMP};
  static const int64_t counts[] = {1, 2, 3, 4, 5, 14, 23};
  static const uint32_t channels[] = {32, 31, 17, 16, 15, 1};
  const hn_depthwise_bf16_ops *o = k->ops;
  size_t turn = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
      for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
        for (int fill = 0, fills = ck_fills(c); fill < fills && !ck_failed(c); fill++, turn++) {
          shape s = shapes[i];
          s.n = counts[n], s.flags = flags[f], s.channels = channels[turn % 6];
          check_row(c, o, &s, (enum ck_fill)fill);
        }
  for (size_t n = 1; n <= PANEL; n++) check_pair(c, o, 1 + n % 3, n, n % 4);
}

static void bench_call(void *p) {
  const hn_depthwise_bf16_ops *o = ((void **)p)[0];
  o->row(((void **)p)[1]);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    const char *label;
    uint32_t taps;
    int64_t stride, n;
  } line[] = {{"3x3 112 pixels", 3, 1, 112},
              {"3x3s2 56 pixels", 3, 2, 56},
              {"3x3 14 pixels", 3, 1, 14},
              {"5x5 28 pixels", 5, 1, 28},
              {"7x7 56 pixels", 7, 1, 56}};
  for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
    const size_t width = (size_t)((line[i].n - 1) * line[i].stride + line[i].taps);
    const uint16_t *rows[MAX_ROWS];
    uint16_t *mem = aligned_alloc(64, (width * line[i].taps + (size_t)line[i].n) * PANEL * 2);
    float *w = aligned_alloc(64, (size_t)(line[i].taps * line[i].taps + 1) * PANEL * 4);
    if (!mem || !w) exit(6);
    for (size_t j = 0; j < width * line[i].taps * PANEL; j++) mem[j] = (uint16_t)(0x3f00 + j % 13);
    for (size_t j = 0; j < (size_t)(line[i].taps * line[i].taps + 1) * PANEL; j++)
      w[j] = (float)(j % 13) * 0.1f - 0.6f;
    for (uint32_t v = 0; v < line[i].taps; v++) rows[v] = mem + v * width * PANEL;
    hn_depthwise_bf16_row r = {.x = rows,
                               .w = w,
                               .w_tap = PANEL,
                               .rows = line[i].taps,
                               .taps = line[i].taps,
                               .stride = line[i].stride,
                               .dilation = 1,
                               .y = mem + width * line[i].taps * PANEL,
                               .n = line[i].n,
                               .channels = PANEL,
                               .flags = HN_EPI_BIAS | HN_EPI_CLAMP,
                               .hi = 6,
                               .bias = w + (size_t)(line[i].taps * line[i].taps) * PANEL};
    const void *call[2] = {k->ops, &r};
    const double t = ck_time(bench_call, (void *)(uintptr_t)call), pixels = (double)(line[i].n * PANEL);
    const ck_work work = {.flops = 2.0 * pixels * (double)(line[i].taps * line[i].taps),
                          .read = 2.0 * (double)(width * line[i].taps * PANEL),
                          .written = 2.0 * pixels};
    ck_bench_line(c, line[i].label, t, &work, 0);
    free(mem), free(w);
  }
}

const ck_family ck_family_depthwise_bf16 = {"depthwise_bf16", check, bench};
