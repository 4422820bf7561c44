/* Adapter of the sums of Strassen's method: each against the formula in f64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/strassen/strassen.h"
#include "check.h"
#include "strassen_product.h"

static void check_rows(ck *c, const hn_strassen_ops *ops, size_t k, bool both, size_t shift) {
  const size_t half = k + 3;
  float *top = ck_alloc(c, half + k, shift), *bottom = ck_alloc(c, half + k, 0), *to[HN_STRASSEN_PRODUCTS];
  ck_fill(c, top, half + k, CK_RANDOM);
  ck_fill(c, bottom, half + k, CK_RANDOM);
  for (int p = 0; p < HN_STRASSEN_PRODUCTS; p++) to[p] = ck_alloc(c, k, 0);
  ck_case(c, "rows k=%zu both=%d", k, both);
  ops->rows(top, both ? bottom : NULL, (ptrdiff_t)half, k, to);
  for (size_t i = 0; i < k; i++) {
    const double a11 = (double)top[i], a12 = (double)top[half + i], a21 = both ? (double)bottom[i] : 0,
                 a22 = both ? (double)bottom[half + i] : 0;
    const double want[HN_STRASSEN_PRODUCTS] = {a11 + a22, a21 + a22, a11,      a22,
                                               a11 + a12, a21 - a11, a12 - a22};
    for (int p = 0; p < HN_STRASSEN_PRODUCTS; p++)
      ck_near(c, (size_t)p * k + i, to[p][i], want[p], CK_EPS * fabs(want[p]));
  }
  ck_release_all(c);
}

/* at: where the largest one lies. */
static void check_size(ck *c, const hn_strassen_ops *ops, size_t k, size_t at) {
  float *x = ck_alloc(c, k, k % 3), most;
  ck_fill(c, x, k, CK_RANDOM);
  x[at] = -3;
  ck_case(c, "size k=%zu largest at %zu", k, at);
  double want = 0;
  const float sum = ops->size(x, k, &most);
  for (size_t i = 0; i < k; i++) want += fabs((double)x[i]);
  ck_near(c, 0, sum, want, (double)k * CK_EPS * want);
  ck_near(c, 1, most, 3, 0);
  ck_release_all(c);
}

static void check_columns(ck *c, const hn_strassen_ops *ops, size_t k) {
  const size_t n = ops->nr;
  float *b = ck_alloc(c, k * n, 0), *sum = ck_alloc(c, n, 0), *most = ck_alloc(c, n, 0);
  ck_fill(c, b, k * n, CK_RANDOM);
  ck_case(c, "columns k=%zu", k);
  ops->columns(b, k, sum, most);
  for (size_t j = 0; j < n; j++) {
    double want = 0, largest = 0;
    for (size_t i = 0; i < k; i++) {
      const double x = fabs((double)b[i * n + j]);
      want += x, largest = fmax(largest, x);
    }
    ck_near(c, j, sum[j], want, (double)k * CK_EPS * want);
    ck_near(c, n + j, most[j], largest, 0);
  }
  ck_release_all(c);
}

static void check_tile(ck *c, const hn_strassen_ops *ops, size_t m, size_t k, hn_strassen_form form,
                       hn_strassen_to to0, hn_strassen_to to1) {
  const size_t n = ops->nr, lda = k + 5;
  const hn_strassen_to to[2] = {to0, to1};
  float *a = ck_alloc(c, (m - 1) * lda + k, 0), *b = ck_alloc(c, k * n, 0), *with = ck_alloc(c, k * n, 0),
        *y[2], *before[2];
  ck_fill(c, a, (m - 1) * lda + k, CK_RANDOM);
  ck_fill(c, b, k * n, CK_RANDOM);
  ck_fill(c, with, k * n, CK_RANDOM);
  for (int i = 0; i < 2; i++) {
    y[i] = ck_alloc(c, m * n, 0), before[i] = ck_alloc(c, m * n, 0);
    ck_fill(c, y[i], m * n, CK_RANDOM);
    memcpy(before[i], y[i], m * n * sizeof(float));
  }
  ck_case(c, "tile m=%zu k=%zu form=%d to=%d,%d", m, k, (int)form, (int)to0, (int)to1);
  ops->tile(&(hn_strassen_tile){.a = a,
                                .lda = (ptrdiff_t)lda,
                                .b = b,
                                .with = with,
                                .k = k,
                                .m = (uint32_t)m,
                                .form = form,
                                .to = {to0, to1},
                                .c = {y[0], y[1]}});
  for (size_t e = 0; e < m * n; e++) {
    double sum = 0, size = 0;
    for (size_t i = 0; i < k; i++) {
      const double x = (double)a[e / n * lda + i], u = (double)b[i * n + e % n],
                   v = form == HN_STRASSEN_ALONE ? 0 : (double)with[i * n + e % n];
      sum += x * (form == HN_STRASSEN_DIFFERENCE ? u - v : u + v);
      size += fabs(x) * (fabs(u) + fabs(v));
    }
    for (int i = 0; i < 2; i++) {
      const double old = (double)before[i][e], want = to[i] == HN_STRASSEN_NONE    ? old
                                                      : to[i] == HN_STRASSEN_FIRST ? sum
                                                      : to[i] == HN_STRASSEN_ADDED ? old + sum
                                                                                   : old - sum;
      const double off = to[i] == HN_STRASSEN_NONE ? 0 : (double)(k + 2) * CK_EPS * (size + fabs(old));
      ck_near(c, e, y[i][e], want, off);
    }
  }
  ck_release_all(c);
}

static void check_give(ck *c, const hn_strassen_ops *ops, size_t m, bool held) {
  const size_t n = ops->nr, ldc = n + 5, all = (m - 1) * ldc + n;
  float *p = ck_alloc(c, m * n, 0), *y = ck_alloc(c, all, 0), *before = ck_alloc(c, all, 0);
  ck_fill(c, p, m * n, CK_RANDOM);
  ck_fill(c, y, all, CK_RANDOM);
  memcpy(before, y, all * sizeof *y);
  ck_case(c, "give m=%zu held=%d", m, held);
  ops->give(p, m, y, (ptrdiff_t)ldc, held);
  for (size_t i = 0; i < all; i++) {
    const size_t row = i / ldc, column = i % ldc;
    const double old = (double)before[i],
                 want = column < n ? (held ? old : 0) + (double)p[row * n + column] : old;
    ck_near(c, i, y[i], want, column < n ? CK_EPS * fabs(want) : 0);
  }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {1, 2, 7, 8, 15, 16, 17, 33, 64, 100};
  const hn_strassen_ops *ops = k->ops;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (int both = 0; both < 2; both++) check_rows(c, ops, lengths[i], both, i % 3);
    check_size(c, ops, lengths[i], 0);
    check_size(c, ops, lengths[i], lengths[i] - 1);
    check_columns(c, ops, lengths[i]);
    for (size_t m = 1; m <= ops->mr; m++) /* every form with every pair of ends in turn */
      for (int form = 0; form < 3; form++) {
        const size_t ends = (i * ops->mr + m) * 3 + (size_t)form;
        check_tile(c, ops, m, lengths[i], (hn_strassen_form)form, (hn_strassen_to)(ends % 4),
                   (hn_strassen_to)(ends / 4 % 4));
      }
  }
  for (size_t m = 1; m <= ops->mr; m++)
    for (int held = 0; held < 2; held++) check_give(c, ops, m, held);
  ck_strassen_products(c, k->isa);
}

enum { K = 384 };
struct job {
  const hn_strassen_ops *ops;
  float *x, *y;
  hn_strassen_form form;
};
static void run_rows(void *arg) {
  const struct job *j = arg;
  float *to[HN_STRASSEN_PRODUCTS];
  for (int p = 0; p < HN_STRASSEN_PRODUCTS; p++) to[p] = j->y + p * K;
  j->ops->rows(j->x, j->x + 2 * K, K, K, to);
}
static void run_tile(void *arg) {
  const struct job *j = arg;
  const hn_strassen_ops *o = j->ops;
  const float *b = j->x + o->mr * (K + 16);
  o->tile(&(hn_strassen_tile){.a = j->x,
                              .lda = K + 16,
                              .b = b,
                              .with = b + K * o->nr,
                              .k = K,
                              .m = o->mr,
                              .form = j->form,
                              .to = {HN_STRASSEN_ADDED, HN_STRASSEN_TAKEN},
                              .c = {j->y, j->y + o->mr * o->nr}});
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("strassen", "f32", HN_ISA_SCALAR);
  const hn_strassen_ops *o = k->ops;
  const size_t floats = o->mr * (K + 16) + 2 * K * o->nr + 4 * K, vectors = o->nr / 2;
  float *x = ck_alloc(c, floats, 0), *y = ck_alloc(c, 2 * o->mr * o->nr + 7 * K, 0);
  ck_fill(c, x, floats, CK_RANDOM);
  ck_fill(c, y, 2 * o->mr * o->nr + 7 * K, CK_RANDOM);
  static const char *const names[] = {"tile, a panel", "tile, a sum of panels",
                                      "tile, a difference of panels", "factors of 2 rows, k = 2 x 384"};
  for (int i = 0; i < 4; i++) {
    struct job j = {o, x, y, (hn_strassen_form)i};
    const double t = ck_time(i == 3 ? run_rows : run_tile, &j);
    j.ops = scalar->ops;
    const double ts = i < 3 || k == scalar ? 0 : ck_time(run_rows, &j); /* tiles differ in size */
    const double rows = o->mr, columns = o->nr, lanes = (double)vectors;
    const ck_work work = i == 3 ? (ck_work){.flops = 9.0 * K,
                                            .instructions = 24.0 * K / lanes,
                                            .read = 16.0 * K,
                                            .written = 28.0 * K}
                                : (ck_work){.flops = 2.0 * rows * columns * K,
                                            .instructions = (3 * rows + 4) * K,
                                            .read = 4.0 * K * (rows + (i ? 2 : 1) * columns),
                                            .written = 8 * rows * columns};
    ck_bench_line(c, names[i], t, &work, ts);
  }
}

const ck_family ck_family_strassen = {"strassen", check, bench};
