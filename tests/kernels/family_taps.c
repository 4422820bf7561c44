/* Adapter of sums over a few places. Bound of k products and what they are added to: (k + 2) eps of the sum
 * of their absolute values. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/taps/taps.h"
#include "check.h"

enum { PLACES = 50 };

static void check_points(ck *c, const struct hn_taps_ops *ops, size_t points, size_t n_taps, size_t channels,
                         enum ck_fill fill) {
  const size_t pitch = points + n_taps % 3, x_pitch = channels + points % 2, y_pitch = channels + n_taps % 2;
  const size_t n_x = (PLACES - 1) * x_pitch + channels, n_y = points ? (points - 1) * y_pitch + channels : 0,
               n_table = n_taps ? (n_taps - 1) * pitch + points : 0;
  float *x = ck_alloc(c, n_x, 0), *y = ck_alloc(c, n_y, 1), *z = ck_alloc(c, points, 0),
        *w = ck_alloc(c, n_table, 0), *base = ck_alloc(c, points, 1);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, n_table, 0);
  ck_fill(c, x, n_x, fill);
  ck_fill(c, w, n_table, CK_RANDOM);
  ck_fill(c, base, points, CK_RANDOM);
  for (size_t i = 0; i < n_table; i++) at[i] = (int32_t)(ck_random(c) % (PLACES + 6)) - 6;
  ck_case(c, "%zu points, %zu taps, %zu channels, fill %s", points, n_taps, channels, ck_fill_name(fill));
  const hn_taps taps = {at, w, base, pitch, n_taps, points};
  ops->pixels(y, (ptrdiff_t)y_pitch, x, (ptrdiff_t)x_pitch, channels, &taps);
  ops->plane(z, x, &taps);
  for (size_t p = 0; p < points; p++)
    for (size_t k = 0; k <= channels; k++) { /* the last: of a plane */
      double sum = (double)base[p], size = fabs(sum);
      for (size_t t = 0; t < n_taps; t++) {
        const int32_t a = at[t * pitch + p];
        if (a < 0) continue;
        const double v =
            (double)w[t * pitch + p] * (double)(k < channels ? x[(size_t)a * x_pitch + k] : x[a]);
        sum += v, size += fabs(v);
      }
      const double bound = (double)(n_taps + 2) * CK_EPS * size + (double)n_taps * CK_TINY;
      ck_near(c, p * (channels + 1) + k, k < channels ? y[p * y_pitch + k] : z[p], sum, bound);
    }
  ck_release_all(c);
}

/* Every table of corners gives what lies between the four pixels: of an image that is i * width + k at pixel
 * (i, k) the place in pixels itself. The coordinate is off by three roundings, the weights by as many each.
 */
static void check_corners(ck *c, const struct hn_taps_ops *ops, size_t n, int32_t height, int32_t width,
                          bool align) {
  const size_t pitch = n + 3;
  float *g = ck_alloc(c, 2 * n, 0), *w = ck_alloc(c, 4 * pitch, 0);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, 4 * pitch, 0);
  size_t outside = 0;
  ck_fill(c, g, 2 * n, n % 2 ? CK_SPECIAL : CK_RANDOM);
  for (size_t i = 0; i < 2 * n; i++) g[i] *= 1.3f;
  ck_case(c, "corners of %zu points, %d x %d, align %d", n, (int)height, (int)width, align);
  const size_t said = ops->corners(at, w, pitch, g, n, height, width, align);
  for (size_t p = 0; p < n; p++) {
    const float x = align ? (g[2 * p] + 1) / 2 * (float)(width - 1) : ((g[2 * p] + 1) * (float)width - 1) / 2,
                y = align ? (g[2 * p + 1] + 1) / 2 * (float)(height - 1)
                          : ((g[2 * p + 1] + 1) * (float)height - 1) / 2;
    const bool inside = x >= 0 && x < (float)(width - 1) && y >= 0 && y < (float)(height - 1);
    outside += !inside;
    ck_true(c, inside == (at[p] >= 0), "a point is inside or not");
    if (!inside) continue;
    double sum_x = 0, sum_y = 0, all = 0;
    for (size_t t = 0; t < 4; t++) {
      const int32_t i = at[t * pitch + p];
      ck_true(c, i >= 0 && i < height * width, "a place of the image");
      sum_x += (double)w[t * pitch + p] * (double)(i % width),
          sum_y += (double)w[t * pitch + p] * (double)(i / width);
      all += (double)w[t * pitch + p];
    }
    ck_near(c, p, (float)sum_x, (double)x, 8 * CK_EPS * width);
    ck_near(c, p, (float)sum_y, (double)y, 8 * CK_EPS * height);
    ck_near(c, p, (float)all, 1, 8 * CK_EPS);
  }
  ck_true(c, said == outside, "the count of points that are not inside");
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  for (size_t n = 0; n < 70; n += 1 + n / 8)
    for (int align = 0; align < 2; align++) {
      check_corners(c, k->ops, n, 1, 1, align);
      check_corners(c, k->ops, n, 9, 2, align);
      check_corners(c, k->ops, n, 31, 300, align);
    }
  static const size_t points[] = {0, 1, 7, 8, 9, 15, 16, 17, 40}, n_taps[] = {1, 4, 8, 16},
                      channels[] = {1, 3, 8, 16, 17, 31, 33, 64, 71};
  for (int fill = 0; fill < CK_FILLS; fill++)
    for (size_t p = 0; p < sizeof points / sizeof *points; p++)
      for (size_t t = 0; t < sizeof n_taps / sizeof *n_taps; t++)
        for (size_t n = 0; n < sizeof channels / sizeof *channels; n++)
          check_points(c, k->ops, points[p], n_taps[t], channels[n], fill);
}

struct job {
  const struct hn_taps_ops *ops;
  float *y;
  const float *x;
  hn_taps taps;
  bool pixels;
};
static void run_job(void *arg) {
  struct job *j = arg;
  if (j->pixels)
    j->ops->pixels(j->y, 64, j->x, 64, 64, &j->taps);
  else
    j->ops->plane(j->y, j->x, &j->taps);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("taps", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, 64 * 64, 0), *w = ck_alloc(c, 1024, 0), *base = ck_alloc(c, 256, 0);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, 1024, 0);
  ck_fill(c, x, 64 * 64, CK_RANDOM);
  ck_fill(c, w, 1024, CK_RANDOM);
  ck_fill(c, base, 256, CK_ZEROS);
  for (size_t i = 0; i < 1024; i++) at[i] = (int32_t)(ck_random(c) % 64);
  for (int pixels = 0; pixels < 2; pixels++) {
    struct job j = {k->ops, ck_alloc(c, 256 * 64, 0), x, {at, w, base, 256, 4, 256}, pixels};
    const double n = 256 * (pixels ? 64 : 1), t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    ck_bench_line(c, pixels ? "256 points of 4 taps x64" : "256 points of 4 taps", t,
                  &(ck_work){.flops = 8 * n, .read = 8192 + 4.0 * (pixels ? 64 * 64 : 64), .written = 4 * n},
                  ts);
  }
}

const ck_family ck_family_taps = {"taps", check, bench};
