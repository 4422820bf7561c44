/* Adapter of the softmax kernels.
 *
 * Bound, relative to exp(x - max) / sum: x - max carries one rounding, which moves exp by its absolute size;
 * exp 1 ulp; the sum of n terms; reciprocal and product 2 ulp. The logarithm: the two subtractions and log,
 * absolute.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/kernels/softmax/softmax.h"
#include "check.h"

/* What all elements of a row share. */
typedef struct row {
  const double *t, *err; /* the elements' arguments, and how far each may be off */
  double top, top_err, sum, sum_rel;
} row;

static row row_of(const double *t, const double *err, size_t n) {
  double top = -INFINITY, sum = 0, top_err = 0, worst = 0;
  for (size_t j = 0; j < n; j++) top = isnan(t[j]) || isnan(top) ? NAN : fmax(top, t[j]);
  for (size_t j = 0; j < n; j++)
    if (t[j] == top) top_err = err[j];
  for (size_t j = 0; j < n; j++) {
    const double moved = err[j] + top_err + CK_EPS * fabs(t[j] - top), term = exp(t[j] - top);
    sum += term;
    if (isfinite(moved)) worst += term * moved;
  }
  /* relative error of the sum: of its terms, of exp, and of adding n of them */
  return (row){t, err, top, top_err, sum, worst / sum + 2 * CK_EPS + (double)(n + 2) * CK_EPS};
}

static void expect(ck *c, size_t at, float got, const row *r, size_t i, bool log_form) {
  const double t = r->t[i], top = r->top, sum = r->sum, sum_rel = r->sum_rel;
  const double own = r->err[i] + r->top_err + CK_EPS * fabs(t - top);
  if (log_form) {
    const double want = t - top - log(sum);
    /* a sum whose exact value is near 1 is 1 + the small terms: log of it carries the sum's error, absolutely
     */
    ck_near(c, at, got, want, own + sum_rel + 2 * CK_EPS * (fabs(log(sum)) + fabs(want)) + CK_TINY);
  } else {
    const double want = exp(t - top) / sum;
    const double rel = isfinite(own) ? own + 2 * CK_EPS + sum_rel + 4 * CK_EPS : 0;
    ck_near(c, at, got, want, 1.01 * rel * want + CK_WEIGHT);
  }
}

static void check_rows(ck *c, const struct hn_softmax_ops *ops, size_t rows, size_t n, enum ck_fill fill,
                       bool log_form, bool in_place) {
  const size_t ld = n + rows % 3, ldy = in_place ? ld : n + n % 2, total = rows * ld;
  float *x = ck_alloc(c, total, n % 3), *y = in_place ? x : ck_alloc(c, rows * ldy, n % 2);
  double *t = malloc((total + 1) * sizeof *t), err[2100] = {0};
  ck_fill(c, x, total, fill);
  for (size_t i = 0; i < total; i++) t[i] = (double)(x[i] *= fill == CK_RANDOM ? 20.0f : 1.0f);
  ck_case(c, "%zu rows n=%zu fill=%s log=%d in place=%d", rows, n, ck_fill_name(fill), log_form, in_place);
  ops->rows(y, (ptrdiff_t)ldy, x, (ptrdiff_t)ld, rows, n, log_form);
  for (size_t k = 0; k < rows; k++) {
    const row r = row_of(t + k * ld, err, n);
    for (size_t i = 0; i < n; i++) expect(c, k * n + i, y[k * ldy + i], &r, i, log_form);
  }
  free(t);
  ck_release_all(c);
}

static void check_columns(ck *c, const struct hn_softmax_ops *ops, size_t n, size_t cols, enum ck_fill fill,
                          bool log_form) {
  const size_t ld = cols + n % 3, total = n ? (n - 1) * ld + cols : 0;
  float *x = ck_alloc(c, total, 0), *y = ck_alloc(c, total, 0);
  double t[64], err[64] = {0};
  ck_fill(c, x, total, fill);
  ck_case(c, "columns n=%zu cols=%zu ld=%zu fill=%s log=%d", n, cols, ld, ck_fill_name(fill), log_form);
  for (size_t i = 0; i < total; i++) y[i] = 7.0f; /* the gaps between rows must stay */
  ops->columns(y, x, n, cols, (ptrdiff_t)ld, log_form);
  for (size_t col = 0; col < cols; col++) {
    for (size_t i = 0; i < n; i++) t[i] = (double)x[i * ld + col];
    const row r = row_of(t, err, n);
    for (size_t i = 0; i < n; i++) expect(c, i * ld + col, y[i * ld + col], &r, i, log_form);
  }
  for (size_t i = 0; i + 1 < n; i++)
    for (size_t g = cols; g < ld; g++) ck_same(c, i * ld + g, y[i * ld + g], 7.0f);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {0,  1,  2,  7,  8,   9,   15,   16,   17,  31,
                                   32, 33, 49, 64, 127, 300, 1000, 1009, 2055};
  static const size_t cols[] = {1, 7, 8, 16, 17, 35};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (size_t rows = 0; rows < 36; rows += 1 + rows / 2)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        for (int form = 0; form < 4; form++)
          check_rows(c, k->ops, rows, lengths[l], fill, form % 2, form / 2);
  for (size_t n = 1; n < 40; n += 9)
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        for (int log_form = 0; log_form < 2; log_form++) check_columns(c, k->ops, n, cols[i], fill, log_form);
}

struct job {
  const struct hn_softmax_ops *ops;
  float *y;
  const float *x;
  size_t rows, n;
};
static void run_job(void *arg) {
  struct job *j = arg;
  const ptrdiff_t n = (ptrdiff_t)j->n;
  j->ops->rows(j->y, n, j->x, n, j->rows, j->n, false);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {49, 64, 128, 196, 1000};
  const struct hn_kernel *scalar = hn_kernel_find("softmax", "f32", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const size_t n = lengths[i], rows = 16;
    /* Masked vectors that reach into the page behind, which cannot be read, take many times as long. */
    float *x = ck_alloc(c, n * rows + 16, 0);
    struct job j = {k->ops, ck_alloc(c, n * rows + 16, 0), x, rows, n};
    ck_fill(c, x, n * rows, CK_RANDOM);
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "rows 16x%zu", n);
    /* maximum, subtract, exp, sum, times 1 / sum */
    const double all = (double)(n * rows);
    ck_bench_line(c, label, t, &(ck_work){.instructions = 18 * all, .read = 4 * all, .written = 4 * all}, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_softmax = {"softmax", check, bench};
