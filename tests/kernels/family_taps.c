/* Adapter of sums over a few places. Bound of k products and what they are added to: (k + 2) eps of the sum
 * of their absolute values; the largest of them is exact. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/taps/taps.h"
#include "check.h"

/* Pixels of an image: as many as vectors hold, and more. */
static const size_t some_places[] = {1, 16, 23, 50, 64, 90};

static void check_points(ck *c, const struct hn_taps_ops *ops, size_t n_places, size_t points, size_t n_taps,
                         size_t channels, enum ck_fill fill) {
  const size_t pitch = points + n_taps % 3, x_pitch = channels + points % 2, y_pitch = channels + n_taps % 2;
  const size_t n_x = (n_places - 1) * x_pitch + channels,
               n_y = points ? (points - 1) * y_pitch + channels : 0,
               n_table = n_taps ? (n_taps - 1) * pitch + points : 0;
  float *x = ck_alloc(c, n_x, 0), *y = ck_alloc(c, n_y, 1), *z = ck_alloc(c, points, 0),
        *w = ck_alloc(c, n_table, 0), *base = ck_alloc(c, points, 1);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, n_table, 0);
  ck_fill(c, x, n_x, fill);
  ck_fill(c, w, n_table, CK_RANDOM);
  ck_fill(c, base, points, CK_RANDOM);
  for (size_t i = 0; i < n_table; i++) at[i] = (int32_t)(ck_random(c) % (n_places + 6)) - 6;
  /* Every other tap of most points is the pixel behind that of the tap before. */
  for (size_t t = 1; t < n_taps && n_places > 1 && points % 2; t += 2)
    for (size_t p = 0; p < points; p++) {
      int32_t *one = at + (t - 1) * pitch + p;
      if (*one == (int32_t)n_places - 1 && p < 20) --*one;
      if (*one < (int32_t)n_places - 1) at[t * pitch + p] = *one < 0 ? -1 : *one + 1;
    }
  ck_case(c, "%zu places, %zu points, %zu taps, %zu channels, fill %s", n_places, points, n_taps, channels,
          ck_fill_name(fill));
  const hn_taps taps = {at, w, base, pitch, n_taps, points};
  ops->pixels(y, (ptrdiff_t)y_pitch, x, (ptrdiff_t)x_pitch, channels, &taps);
  ops->plane(z, x, n_x, &taps);
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
  if (points) base[0] = NAN; /* what counts for nothing */
  ops->largest(y, (ptrdiff_t)y_pitch, x, (ptrdiff_t)x_pitch, channels, &taps);
  for (size_t p = 0; p < points; p++)
    for (size_t k = 0; k < channels; k++) {
      float most = base[p];
      for (size_t t = 0; t < n_taps; t++) {
        const int32_t a = at[t * pitch + p];
        most = fmaxf(most, a < 0 ? 0 : w[t * pitch + p] * x[(size_t)a * x_pitch + k]);
      }
      ck_near(c, p * channels + k, y[p * y_pitch + k], (double)most, 0);
    }
  ck_release_all(c);
}

/* Places are the definition's, which reads the same f32 coordinate in double. A linear weight is off by the
 * rounding of a fraction, a cubic one by those of a polynomial whose terms add up to 36 at most, times eight;
 * a point's weight by those of its axes and of their product, where each weight is at most 1. */
static void check_places(ck *c, const struct hn_taps_ops *ops, size_t n, const hn_grid *o,
                         const int64_t *size, size_t axes) {
  const int64_t taps = o->mode == HN_GRID_NEAREST ? 1 : o->mode == HN_GRID_LINEAR ? 2 : HN_GRID_MOST;
  const size_t pitch = n + 3;
  size_t all = 1, far = 0;
  for (size_t d = 0; d < axes; d++) all *= (size_t)taps;
  float *g = ck_alloc(c, axes * n, 0), *w = ck_alloc(c, all * pitch, 0);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, all * pitch, 0);
  ck_fill(c, g, axes * n, n % 5 == 1 ? CK_SPECIAL : CK_RANDOM);
  /* Inside, near the border, and several times around; ties of the nearest; the border itself. */
  for (size_t i = 0; i < axes * n; i++) {
    g[i] *= i % 4 == 0 ? 7.3f : i % 4 == 1 ? 1.3f : 1;
    if (i % 7 == 3) g[i] = i % 2 ? -1 : 1;
    if (i % 7 == 5) g[i] = rintf(g[i] * 8) / 8;
    if (i % 31 == 30) g[i] = ldexpf(g[i], 30);
  }
  ck_case(c, "places of %zu points of %zu axes from %lld, mode %d, padding %d, align %d", n, axes,
          (long long)size[0], (int)o->mode, (int)o->pad, o->align);
  const size_t said = ops->places(at, w, pitch, g, n, o, size, axes);
  for (size_t p = 0; p < n; p++) {
    hn_grid_taps t[HN_TAPS_AXES];
    bool is_far = false;
    for (size_t d = 0; d < axes; d++) {
      const float v = g[p * axes + axes - 1 - d];
      hn_grid_find(o, v, size[d], &t[d]);
      is_far = is_far || fabsf(hn_grid_place(o, v, (float)size[d])) > 0x1p20f;
    }
    if (at[p] == HN_TAPS_FAR) {
      ck_true(c, o->pad == HN_GRID_REFLECTION && is_far, "only what is reflected from far is left out");
      far++;
      continue;
    }
    for (size_t k = 0; k < all; k++) {
      size_t rest = k;
      int64_t place = 0;
      double weight = 1;
      bool there = true;
      for (size_t d = axes, unit = 1; d-- > 0; rest /= (size_t)taps, unit *= (size_t)size[d]) {
        const size_t i = rest % (size_t)taps;
        there = there && t[d].index[i] >= 0;
        place += t[d].index[i] * (int64_t)unit;
        weight *= t[d].weight[i];
      }
      ck_true(c, at[k * pitch + p] == (there ? place : -1), "the place of a tap");
      if (there)
        ck_near(c, p * all + k, w[k * pitch + p], weight,
                (double)axes * (o->mode == HN_GRID_CUBIC ? 8 * 36 : 2) * CK_EPS);
    }
  }
  ck_true(c, said == far, "the count of points that are left out");
  ck_release_all(c);
}

static void check_grids(ck *c, const struct hn_taps_ops *ops) {
  static const int64_t sizes[][HN_TAPS_AXES] = {{1, 1, 1, 1}, {9, 2, 3, 5}, {31, 300, 4, 1}, {2, 7, 1, 6}};
  for (int32_t mode = HN_GRID_NEAREST; mode <= HN_GRID_CUBIC; mode++)
    for (int32_t pad = HN_GRID_ZEROS; pad <= HN_GRID_REFLECTION; pad++)
      for (int align = 0; align < 2; align++)
        for (size_t axes = 1; axes <= (mode == HN_GRID_CUBIC ? 3 : HN_TAPS_AXES); axes++)
          for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (size_t n = 0; n < 300; n += 1 + n / 3)
              check_places(c, ops, n, &(hn_grid){(hn_grid_mode)mode, (hn_grid_padding)pad, align != 0},
                           sizes[k], axes);
}

static void check(ck *c, const struct hn_kernel *k) {
  check_grids(c, k->ops);
  static const size_t points[] = {0, 1, 7, 8, 9, 15, 16, 17, 40}, n_taps[] = {1, 4, 8, 16},
                      channels[] = {1, 3, 8, 16, 17, 31, 33, 64, 71};
  for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
    for (size_t p = 0; p < sizeof points / sizeof *points; p++)
      for (size_t t = 0; t < sizeof n_taps / sizeof *n_taps; t++)
        for (size_t n = 0; n < sizeof channels / sizeof *channels; n++)
          check_points(c, k->ops, some_places[(p + t + n) % (sizeof some_places / sizeof *some_places)],
                       points[p], n_taps[t], channels[n], fill);
}

struct job {
  const struct hn_taps_ops *ops;
  float *y;
  const float *x, *grid;
  hn_taps taps;
  enum { PIXELS, PLANE, SMALL_PLANE, GRID } what;
};

static void run_job(void *arg) {
  struct job *j = arg;
  static const hn_grid grid = {HN_GRID_LINEAR, HN_GRID_ZEROS, true};
  static const int64_t size[] = {8, 8};
  if (j->what == PIXELS)
    j->ops->pixels(j->y, 64, j->x, 64, 64, &j->taps);
  else if (j->what == GRID)
    j->ops->places((int32_t *)(void *)j->y, j->y + 1024, 256, j->grid, 256, &grid, size, 2);
  else
    j->ops->plane(j->y, j->x, j->what == PLANE ? 4096 : 64, &j->taps);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("taps", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, 64 * 64, 0), *w = ck_alloc(c, 1024, 0), *base = ck_alloc(c, 256, 0),
        *grid = ck_alloc(c, 512, 0);
  int32_t *at = (int32_t *)(void *)ck_alloc(c, 1024, 0);
  ck_fill(c, x, 64 * 64, CK_RANDOM);
  ck_fill(c, w, 1024, CK_RANDOM);
  ck_fill(c, grid, 512, CK_RANDOM);
  ck_fill(c, base, 256, CK_ZEROS);
  for (size_t i = 0; i < 1024; i++)
    at[i] = i / 256 % 2 ? at[i - 256] + 1 : (int32_t)(ck_random(c) % 63); /* pairs of neighbours */
  static const char *const names[] = {"256 points of 4 taps x64", "256 points of 4 taps",
                                      "256 points of 4 taps of 64", "256 points of 2 axes"};
  for (int what = PIXELS; what <= GRID; what++) {
    struct job j = {k->ops, ck_alloc(c, 256 * 64, 0), x, grid, {at, w, base, 256, 4, 256}, what};
    const double n = 256 * (what == PIXELS ? 64 : 1), t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    ck_bench_line(
        c, names[what], t,
        &(ck_work){.flops = 8 * n, .read = 8192 + 4.0 * (what == PIXELS ? 64 * 64 : 64), .written = 4 * n},
        ts);
  }
}

const ck_family ck_family_taps = {"taps", check, bench};
