/* Adapter of Fourier transforms. Bound: each pass adds its factor's products, so an element is off by some
 * roundings of the sum of all magnitudes; a wrong turn is off by the size of an element. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/fourier/fourier.h"
#include "check.h"

enum { W = HN_FOURIER_LANES };

/* Factors as the driver orders them; tables of n turns. */
static hn_fourier_lines lines(ck *c, size_t n, bool inverse) {
  hn_fourier_lines f = {.n = n, .scale = inverse ? 1.0f / (float)n : 1.0f};
  float *cosine = ck_alloc(c, n, 0), *sine = ck_alloc(c, n, 1);
  size_t rest = n;
  for (; rest % 4 == 0; rest /= 4) f.factor[f.passes++] = 4;
  if (rest % 2 == 0) rest /= 2, f.factor[f.passes++] = 2;
  for (uint32_t p = 3; rest > 1; p += 2)
    for (; rest % p == 0; rest /= p) f.factor[f.passes++] = p;
  for (size_t i = 0; i < n; i++) {
    const double angle = 2 * M_PI * (double)i / (double)n;
    cosine[i] = (float)cos(angle), sine[i] = (float)((inverse ? 1 : -1) * sin(angle));
  }
  f.cosine = cosine, f.sine = sine;
  return f;
}

static void check_lines(ck *c, const struct hn_fourier_ops *ops, size_t n, bool inverse) {
  const hn_fourier_lines f = lines(c, n, inverse);
  float *x = ck_alloc(c, n * 2 * W, 0), *y = ck_alloc(c, n * 2 * W, 0), *kept = ck_alloc(c, n * 2 * W, 0),
        *folded = ck_alloc(c, 2 * W * (n + 1), 0);
  double passes = 2;
  ck_fill(c, x, n * 2 * W, CK_RANDOM);
  memset(y, 0, n * 2 * W * sizeof *y);
  memset(folded, 0, 2 * W * (n + 1) * sizeof *folded);
  memcpy(kept, x, n * 2 * W * sizeof *x);
  for (size_t i = 0; i < f.passes; i++) passes += (double)f.factor[i] + 4;
  ck_case(c, "n=%zu%s", n, inverse ? ", inverse" : "");
  const float *got = ops->run(&f, x, y, folded);
  for (size_t l = 0; l < W; l += 5)
    for (size_t k = 0; k < n; k++) {
      double re = 0, im = 0, size = 0;
      for (size_t j = 0; j < n; j++) {
        const double angle = (inverse ? 2 : -2) * M_PI * (double)(j * k % n) / (double)n, s = sin(angle),
                     o = cos(angle), a = (double)kept[2 * W * j + l], b = (double)kept[2 * W * j + W + l];
        re += a * o - b * s, im += a * s + b * o, size += fabs(a) + fabs(b);
      }
      const double scale = inverse ? 1.0 / (double)n : 1, bound = passes * CK_EPS * size * scale;
      ck_near(c, 2 * k, got[2 * W * k + l], re * scale, bound);
      ck_near(c, 2 * k + 1, got[2 * W * k + W + l], im * scale, bound);
    }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 24, 33, 60, 64, 100, 127, 128};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !ck_failed(c); i++)
    for (int inverse = 0; inverse < 2; inverse++) check_lines(c, k->ops, sizes[i], inverse);
}

struct job {
  const struct hn_fourier_ops *ops;
  hn_fourier_lines f;
  float *x, *y, *folded;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->run(&j->f, j->x, j->y, j->folded);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("fourier", "f32", HN_ISA_SCALAR);
  static const size_t sizes[] = {64, 512, 768};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const size_t n = sizes[s];
    struct job j = {k->ops, lines(c, n, false), ck_alloc(c, n * 2 * W, 0), ck_alloc(c, n * 2 * W, 0),
                    ck_alloc(c, 2 * W * (n + 1), 0)};
    memset(j.x, 0, n * 2 * W * sizeof *j.x), memset(j.y, 0, n * 2 * W * sizeof *j.y);
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[32];
    snprintf(label, sizeof label, "%zu points", n);
    ck_bench_line(c, label, t,
                  &(ck_work){.flops = 5.0 * W * (double)n * log2((double)n),
                             .read = 8.0 * W * (double)n,
                             .written = 8.0 * W * (double)n},
                  ts);
  }
}

const ck_family ck_family_fourier = {"fourier", check, bench};
