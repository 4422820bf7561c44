/* Adapter of inverses. Bound: of a matrix and its inverse by elimination with row exchanges the product is
 * off from the identity by some n^2 roundings of their sizes; an element of a wrong inverse is off by much
 * more. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/invert/invert.h"
#include "check.h"

enum { LARGEST = 70 };

static double *doubles(ck *c, size_t n) { return (double *)(void *)ck_alloc(c, 2 * n, 0); }
static size_t pitch_of(size_t n) { return (n + HN_INVERT_BLOCK - 1) / HN_INVERT_BLOCK * HN_INVERT_BLOCK; }
/* 64-byte aligned, as kernels may ask, and its end at the guard page. */
static double *room(ck *c, size_t n) { return doubles(c, (n + HN_INVERT_BLOCK) * pitch_of(n)); }

static void check_matrix(ck *c, const struct hn_invert_ops *ops, size_t n, int kind) {
  float *a = ck_alloc(c, n * n, 0), *x = ck_alloc(c, n * n, 1);
  int32_t *order = (int32_t *)(void *)ck_alloc(c, n, 0);
  double size_a = 0, size_x = 0;
  ck_fill(c, a, n * n, CK_RANDOM);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      /* 1: large in the other diagonal, so that every row is exchanged. 2: a permutation. */
      if (kind == 1 && i + k + 1 == n) a[i * n + k] += (float)n;
      if (kind == 2) a[i * n + k] = (i * (n % 3 ? 3 : 1) + 1) % n == k ? 2.0f : 0.0f;
    }
  ck_case(c, "n=%zu, kind %d", n, kind);
  ops->matrix(x, a, n, pitch_of(n), room(c, n), order);
  for (size_t i = 0; i < n * n; i++)
    size_a = fmax(size_a, fabs((double)a[i])), size_x = fmax(size_x, fabs((double)x[i]));
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      double sum = 0;
      for (size_t m = 0; m < n; m++) sum += (double)a[i * n + m] * (double)x[m * n + k];
      const double bound = (double)n * size_a * size_x * (CK_EPS + 16 * (double)(n * n) * 0x1p-53);
      ck_true(c, fabs(sum - (i == k)) <= bound, "matrix times inverse is the identity");
    }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  for (size_t n = 1; n <= LARGEST && !ck_failed(c); n += n < 20 ? 1 : 7)
    for (int kind = 0; kind < 3; kind++) check_matrix(c, k->ops, n, kind);
  float *a = ck_alloc(c, 4, 0), *x = ck_alloc(c, 4, 0);
  for (size_t i = 0; i < 4; i++) a[i] = 1;
  ck_case(c, "singular");
  ((const struct hn_invert_ops *)k->ops)
      ->matrix(x, a, 2, 8, room(c, 2), (int32_t *)(void *)ck_alloc(c, 2, 0));
  for (size_t i = 0; i < 4; i++) ck_true(c, !isfinite(x[i]), "what has no inverse is no number");
}

struct job {
  const struct hn_invert_ops *ops;
  float *y;
  const float *x;
  double *work;
  int32_t *order;
  size_t n;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->matrix(j->y, j->x, j->n, pitch_of(j->n), j->work, j->order);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("invert", "f64", HN_ISA_SCALAR);
  static const size_t sizes[] = {4, 16, 128};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const size_t n = sizes[s];
    float *x = ck_alloc(c, n * n, 0);
    ck_fill(c, x, n * n, CK_RANDOM);
    struct job j = {k->ops, ck_alloc(c, n * n, 0), x, room(c, n), (int32_t *)(void *)ck_alloc(c, n, 0), n};
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[32];
    snprintf(label, sizeof label, "%zu x %zu", n, n);
    /* A double takes the place of two floats. */
    ck_bench_line(c, label, t,
                  &(ck_work){.flops = 4.0 * (double)(n * n * n),
                             .read = 4.0 * (double)(n * n),
                             .written = 4.0 * (double)(n * n)},
                  ts);
  }
}

const ck_family ck_family_invert = {"invert", check, bench};
