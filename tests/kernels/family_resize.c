/* Adapter of the interpolation kernels. Bound of a blend: 1 - w is rounded once, two products and a sum: 3
 * eps of |a (1 - w)| + |b w|. Picks are exact. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/resize/resize.h"
#include "check.h"

enum { MAX_WIDTH = 40 };

static void expect_blend(ck *c, size_t at, float got, float a, float b, float w) {
  const double u = 1.0 - (double)w, p = (double)a * u, q = (double)b * (double)w;
  ck_near(c, at, got, p + q, 3 * CK_EPS * (fabs(p) + fabs(q)) + 3 * CK_TINY);
}

static void check_row(ck *c, const struct hn_resize_ops *ops, size_t channels, size_t in_w, size_t out_w,
                      enum ck_fill fill) {
  const size_t in_pitch = channels + out_w % 2, out_pitch = channels + in_w % 2;
  const size_t n_in = (in_w - 1) * in_pitch + channels,
               n_out = out_w ? (out_w - 1) * out_pitch + channels : 0;
  float *x = ck_alloc(c, n_in, 0), *y = ck_alloc(c, n_out, 1), *z = ck_alloc(c, n_out, 0), w[MAX_WIDTH];
  int32_t left[MAX_WIDTH], right[MAX_WIDTH];
  ck_fill(c, x, n_in, fill);
  for (size_t i = 0; i < out_w; i++) {
    left[i] = (int32_t)(ck_random(c) % in_w);
    right[i] = left[i] + 1 < (int32_t)in_w ? left[i] + 1 : left[i];
    w[i] = i % 5 == 0 ? 0.0f : (float)(ck_random(c) % 1000) / 1000.0f;
  }
  ck_case(c, "row %zu -> %zu, %zu channels, fill %s", in_w, out_w, channels, ck_fill_name(fill));
  ops->blend_row(y, (ptrdiff_t)out_pitch, x, (ptrdiff_t)in_pitch, channels, out_w, left, right, w);
  ops->pick_row(z, (ptrdiff_t)out_pitch, x, (ptrdiff_t)in_pitch, channels, out_w, left);
  for (size_t i = 0; i < out_w; i++)
    for (size_t k = 0; k < channels; k++) {
      const float a = x[(size_t)left[i] * in_pitch + k], b = x[(size_t)right[i] * in_pitch + k];
      expect_blend(c, i * out_pitch + k, y[i * out_pitch + k], a, b, w[i]);
      ck_same(c, i * out_pitch + k, z[i * out_pitch + k], a);
    }
  ck_release_all(c);
}

/* A sum of k products: k eps of their absolute values, and what underflows. */
static void check_sums(ck *c, const struct hn_resize_ops *ops, size_t n, size_t taps, enum ck_fill fill) {
  enum { ROWS = 9 };
  const size_t pitch = n + taps % 3;
  float *x = ck_alloc(c, (ROWS - 1) * pitch + n, 0), *y = ck_alloc(c, n, n % 3), w[16];
  int32_t at[16];
  ck_fill(c, x, (ROWS - 1) * pitch + n, fill);
  for (size_t t = 0; t < taps; t++)
    at[t] = (int32_t)(ck_random(c) % ROWS), w[t] = (float)(ck_random(c) % 1000) / 700.0f - 0.3f;
  ck_case(c, "sum of %zu rows of %zu, fill %s", taps, n, ck_fill_name(fill));
  ops->sum_rows(y, x, (ptrdiff_t)pitch, n, taps, at, w);
  for (size_t i = 0; i < n; i++) {
    double sum = 0, size = 0;
    for (size_t t = 0; t < taps; t++) {
      const double v = (double)w[t] * (double)x[(size_t)at[t] * pitch + i];
      sum += v, size += fabs(v);
    }
    ck_near(c, i, y[i], sum, (double)(taps + 1) * CK_EPS * size + (double)taps * CK_TINY);
  }
  ck_release_all(c);
}

/* Numbers within the codes lose what is behind their point, towards 0; nothing is written beyond the last. */
static void check_cut(ck *c, const struct hn_resize_ops *ops, size_t n, bool is_signed) {
  enum { BEHIND = 3 };
  float x[256];
  uint8_t y[256 + BEHIND];
  for (size_t i = 0; i < n; i++)
    x[i] = (float)(ck_random(c) % (255 * 256 + 1)) / 256.0f - (is_signed ? 128.0f : 0.0f);
  for (size_t i = 0; i < n + BEHIND; i++) y[i] = 77;
  ck_case(c, "cut of %zu, %s", n, is_signed ? "i8" : "u8");
  ops->cut(y, x, n, is_signed);
  for (size_t i = 0; i < n + BEHIND; i++)
    ck_same(c, i, is_signed ? (float)(int8_t)y[i] : (float)y[i], i < n ? truncf(x[i]) : 77.0f);
}

static void check(ck *c, const struct hn_kernel *k) {
  for (size_t n = 0; n < 250; n += 1 + n / 5) {
    check_cut(c, k->ops, n, false);
    check_cut(c, k->ops, n, true);
  }
  for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
    for (size_t n = 0; n < 200; n += 1 + n / 4)
      for (size_t taps = 1; taps <= 16; taps += 1 + taps / 2) check_sums(c, k->ops, n, taps, fill);
  static const size_t channels[] = {1, 2, 3, 7, 8, 9, 16, 17, 33, 64};
  static const size_t widths[] = {0, 1, 5, 16, 37};
  const struct hn_resize_ops *ops = k->ops;
  for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
      for (size_t o = 0; o < sizeof widths / sizeof *widths; o++) {
        check_row(c, ops, channels[i], 1, widths[o], fill);
        check_row(c, ops, channels[i], 13, widths[o], fill);
      }
    for (size_t n = 0; n < 70; n += 1 + n / 4) {
      float *a = ck_alloc(c, n, 0), *b = ck_alloc(c, n, 1), *y = ck_alloc(c, n, n % 3);
      ck_fill(c, a, n, fill);
      ck_fill(c, b, n, fill);
      ck_case(c, "blend n=%zu fill=%s", n, ck_fill_name(fill));
      ops->blend(y, a, b, n, 0.3f);
      for (size_t i = 0; i < n; i++) expect_blend(c, i, y[i], a[i], b[i], 0.3f);
      ck_release_all(c);
    }
  }
}

struct job {
  const struct hn_resize_ops *ops;
  float *y;
  const float *x, *w;
  const int32_t *left, *right;
  size_t channels;
  bool pick;
};
static void run_job(void *arg) {
  struct job *j = arg;
  const ptrdiff_t c = (ptrdiff_t)j->channels;
  if (j->pick)
    j->ops->pick_row(j->y, c, j->x, c, j->channels, 26, j->left);
  else
    j->ops->blend_row(j->y, c, j->x, c, j->channels, 26, j->left, j->right, j->w);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("resize", "f32", HN_ISA_SCALAR);
  int32_t left[26], right[26];
  float w[26];
  for (int i = 0; i < 26; i++)
    left[i] = i / 2, right[i] = i / 2 < 12 ? i / 2 + 1 : 12, w[i] = i % 2 ? 0.75f : 0.25f;
  float *x = ck_alloc(c, 13 * 256, 0);
  ck_fill(c, x, 13 * 256, CK_RANDOM);
  for (int pick = 1; pick >= 0; pick--) {
    struct job j = {k->ops, ck_alloc(c, 26 * 256, 0), x, w, left, right, 256, pick};
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    ck_bench_line(c, pick ? "nearest 13 -> 26 x256" : "linear 13 -> 26 x256", t,
                  &(ck_work){.instructions = pick ? 0 : 2.0 * 26 * 256,
                             .read = 4.0 * 13 * 256,
                             .written = 4.0 * 26 * 256},
                  ts);
  }
}

const ck_family ck_family_resize = {"resize", check, bench};
