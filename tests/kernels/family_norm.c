/* Adapter of the normalisation kernels.
 *
 * Bounds: a mean of n values, summed in blocks of at most 4096 with the block sums in double, is off by at
 * most (min(n, 4096) + 4) eps mean|x|. Let e be the error of h - mean; the variance then moves by 2 e
 * sqrt(var) + e^2 and (n + 6) eps var, which moves 1 / sqrt(var + eps) by half of that relative to var + eps.
 */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/norm/norm.h"
#include "check.h"

typedef struct moments {
  double mean, var, mean_err, var_err, mag;
} moments;

/* terms: how many values one f32 accumulation may hold; input_err: uncertainty of each value. */
static moments moments_of(const double *h, size_t n, double terms, double input_err, bool rms) {
  moments m = {0};
  for (size_t i = 0; i < n; i++) m.mean += h[i], m.mag += fabs(h[i]);
  m.mean /= (double)n, m.mag /= (double)n;
  m.mean_err = (terms + 4) * CK_EPS * m.mag + input_err + CK_TINY;
  if (rms) m.mean = 0, m.mean_err = 0;
  for (size_t i = 0; i < n; i++) m.var += (h[i] - m.mean) * (h[i] - m.mean);
  m.var /= (double)n;
  const double e = m.mean_err + input_err + 2 * CK_EPS * (m.mag + fabs(m.mean));
  m.var_err = 2 * e * sqrt(m.var) + e * e + (terms + 6) * CK_EPS * m.var + CK_TINY;
  return m;
}

enum { MAX_N = 5000 };
static double h[MAX_N];

/* Infinite inputs make bounds NaN; what they make of the result is exact. */
static double known_bound(double b) { return isfinite(b) ? b : 0; }

static double smaller(double a, double b) { return a < b ? a : b; }

/* What normalising one row gave. */
typedef struct result {
  const float *x, *part[4], *y, *sum;
  float mean, inv_std;
} result;

static void expect_row(ck *c, const result *r, size_t n, float eps, bool rms) {
  const float *x = r->x;
  double mag = 0; /* infinite inputs are left out: what they make of the result is exact */
  for (size_t i = 0; i < n; i++) {
    h[i] = (double)x[i] + (r->part[0] ? (double)r->part[0][i] : 0) + (r->part[1] ? (double)r->part[1][i] : 0);
    const double sizes = fabs((double)x[i]) + fabs(h[i]) + (r->part[0] ? fabs((double)r->part[0][i]) : 0) +
                         (r->part[1] ? fabs((double)r->part[1][i]) : 0);
    if (isfinite(sizes)) mag = fmax(mag, sizes);
  }
  const double input_err = r->part[0] || r->part[1] ? 2 * CK_EPS * mag : 0;
  const moments m = moments_of(h, n, smaller((double)n, 4096), input_err, rms);
  const double total = m.var + (double)eps, s = 1 / sqrt(total), s_rel = 0.5 * m.var_err / total + 3 * CK_EPS;
  ck_near(c, 0, r->mean, m.mean, m.mean_err + CK_EPS * fabs(m.mean));
  /* when the uncertainty of the variance is not small against it, first order says nothing */
  const bool known = s_rel < 0.01 || !isfinite(s_rel);
  if (known) ck_near(c, 1, r->inv_std, s, known_bound(1.05 * s_rel * s));
  for (size_t i = 0; i < n; i++) {
    if (r->sum) ck_near(c, i, r->sum[i], h[i], known_bound(input_err));
    if (!known) continue;
    const double g = r->part[2] ? (double)r->part[2][i] : 1, b = r->part[3] ? (double)r->part[3][i] : 0,
                 z = (h[i] - m.mean) * s;
    const double z_err = (input_err + m.mean_err + CK_EPS * (fabs(h[i]) + 2 * fabs(m.mean))) * s +
                         fabs(z) * (1.05 * s_rel + 2 * CK_EPS);
    ck_near(c, i, r->y[i], z * g + b,
            known_bound(fabs(g) * z_err + 2 * CK_EPS * (fabs(z * g) + fabs(b)) + 4 * CK_TINY));
  }
}

/* rows: so many at once; 0: one by the function for one. */
static void check_row(ck *c, const struct hn_norm_ops *ops, size_t rows, size_t n, enum ck_fill fill,
                      unsigned parts, bool rms) {
  const size_t all = (rows ? rows : 1) * n;
  float *part[4] = {NULL}, *x = ck_alloc(c, all, 0), *y = ck_alloc(c, all, n % 3), *sum = NULL;
  float *mean = ck_alloc(c, rows + 1, 0), *inv_std = ck_alloc(c, rows + 1, 1);
  ck_fill(c, x, all, fill);
  for (unsigned i = 0; i < 4; i++) {
    const size_t some = i == 0 ? all : n;
    if (parts >> i & 1) ck_fill(c, part[i] = ck_alloc(c, some, i), some, i == 2 ? CK_RANDOM : fill);
  }
  if (parts & 16) sum = ck_alloc(c, all, 1);
  struct hn_norm_row r = {.x = x,
                          .residual = part[0],
                          .bias = part[1],
                          .gamma = part[2],
                          .beta = part[3],
                          .y = y,
                          .h = sum,
                          .n = n,
                          .eps = 1e-5f,
                          .rms = rms};
  ck_case(c, "%zu rows n=%zu fill=%s parts=%u rms=%d", rows, n, ck_fill_name(fill), parts, rms);
  if (rows == 0) {
    ops->row(&r);
    mean[0] = r.mean, inv_std[0] = r.inv_std;
  } else {
    ops->rows(&r, rows, parts & 8 ? NULL : mean, parts & 4 ? NULL : inv_std);
  }
  if (n == 0) {
    ck_true(c, true, "an empty row returns");
    ck_release_all(c);
    return;
  }
  for (size_t k = 0; k < rows || k == 0; k++) {
    const size_t at = k * n;
    result one = {x + at,  {part[0] ? part[0] + at : NULL, part[1], part[2], part[3]},
                  y + at,  sum ? sum + at : NULL,
                  mean[k], inv_std[k]};
    if (rows > 0 && (parts & 12) != 0) { /* results that were not asked for: of the row alone */
      struct hn_norm_row again = r;
      float *scratch = ck_alloc(c, n, 0);
      again.x += at, again.y = scratch, again.h = NULL;
      if (part[0]) again.residual += at;
      ops->row(&again);
      if (parts & 8) one.mean = again.mean;
      if (parts & 4) one.inv_std = again.inv_std;
    }
    expect_row(c, &one, n, r.eps, rms);
  }
  ck_release_all(c);
}

static void check_columns(ck *c, const struct hn_norm_ops *ops, size_t rows, size_t cols, enum ck_fill fill) {
  const size_t ld = cols + rows % 3, total = (rows - 1) * ld + cols;
  float *x = ck_alloc(c, total, 0), *y = ck_alloc(c, total, 0), *mean = ck_alloc(c, cols, 1),
        *var = ck_alloc(c, cols, 0);
  float *scale = ck_alloc(c, cols, 1), *shift = ck_alloc(c, cols, 2);
  ck_fill(c, x, total, fill);
  ck_fill(c, scale, cols, CK_RANDOM);
  ck_fill(c, shift, cols, fill);
  ck_case(c, "columns rows=%zu cols=%zu fill=%s", rows, cols, ck_fill_name(fill));
  ops->column_stats(x, rows, cols, (ptrdiff_t)ld, mean, var);
  for (size_t j = 0; j < cols; j++) {
    for (size_t i = 0; i < rows; i++) h[i] = (double)x[i * ld + j];
    const moments m = moments_of(h, rows, smaller((double)rows, 256) + (double)rows / 256, 0, false);
    ck_near(c, j, mean[j], m.mean, m.mean_err + CK_EPS * fabs(m.mean));
    ck_near(c, j, var[j], m.var, m.var_err + 2 * CK_EPS * m.var);
  }
  for (int with_mean = 0; with_mean < 2; with_mean++) {
    ck_case(c, "column_affine rows=%zu cols=%zu fill=%s mean=%d", rows, cols, ck_fill_name(fill), with_mean);
    ops->column_affine(y, (ptrdiff_t)ld, x, (ptrdiff_t)ld, rows, cols, with_mean ? mean : NULL, scale, shift);
    for (size_t i = 0; i < rows; i++)
      for (size_t j = 0; j < cols; j++) {
        const double a = (double)x[i * ld + j], m = with_mean ? (double)mean[j] : 0, s = (double)scale[j],
                     t = (double)shift[j];
        ck_near(c, i * ld + j, y[i * ld + j], (a - m) * s + t,
                3 * CK_EPS * (fabs((a - m) * s) + fabs(t)) + 2 * CK_TINY);
      }
  }
  ck_release_all(c);
}

static void check_flat(ck *c, const struct hn_norm_ops *ops, size_t n, enum ck_fill fill) {
  float *x = ck_alloc(c, n, 0), *y = ck_alloc(c, n, 1), mean, var;
  ck_fill(c, x, n, fill);
  ck_case(c, "stats n=%zu fill=%s", n, ck_fill_name(fill));
  ops->stats(x, n, &mean, &var);
  for (size_t i = 0; i < n; i++) h[i] = (double)x[i];
  const moments m = moments_of(h, n, smaller((double)n, 4096), 0, false);
  ck_near(c, 0, mean, m.mean, m.mean_err + CK_EPS * fabs(m.mean));
  ck_near(c, 1, var, m.var, m.var_err + CK_EPS * m.var);
  ops->affine(y, x, n, 0.25f, 1.5f, -0.125f);
  for (size_t i = 0; i < n; i++) {
    const double z = (h[i] - 0.25) * 1.5;
    ck_near(c, i, y[i], z - 0.125, 3 * CK_EPS * (fabs(z) + 0.125) + CK_TINY);
  }
  ck_release_all(c);
}

/* Beside the sum's own error, of which the power makes `beta` times as much, relatively: the logarithm's and
 * the exponent's roundings move the exponent by a few eps of its size. */
static void check_neighbours(ck *c, const struct hn_norm_ops *ops, size_t n, size_t taps, size_t step,
                             float beta, enum ck_fill fill, float times) {
  const size_t all = n + (taps ? taps - 1 : 0) * step;
  float *from = ck_alloc(c, all, 1), *x = ck_alloc(c, n, 0), *y = ck_alloc(c, n, 2);
  ck_fill(c, from, all, fill);
  ck_fill(c, x, n, CK_RANDOM);
  for (size_t i = 0; i < all; i++) from[i] *= times;
  for (size_t i = 0; i < n; i++) x[i] *= times;
  ck_case(c, "neighbours n=%zu taps=%zu step=%zu beta=%g fill=%s times %g", n, taps, step, (double)beta,
          ck_fill_name(fill), (double)times);
  const struct hn_norm_neighbours r = {x, from, y, (ptrdiff_t)step, taps, n, 0.2f, beta, 1.5f};
  ops->neighbours(&r);
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    for (size_t t = 0; t < taps; t++) sum += (double)from[i + t * step] * (double)from[i + t * step];
    const double base = 1.5 + (double)0.2f * sum, power = -(double)beta * log(base),
                 want = (double)x[i] * exp(power);
    if (!isfinite(base)) continue;
    ck_near(c, i, y[i], want,
            fabs(want) * CK_EPS * (fabs((double)beta) * (double)(taps + 3) + 4 * fabs(power) + 6) + CK_TINY);
  }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {0, 1, 7, 8, 9, 16, 17, 31, 63, 64, 65, 127, 768, 1021, 4097};
  static const size_t cols[] = {1, 7, 8, 9, 16, 17, 35};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      for (unsigned parts = 0; parts < 32; parts++)
        for (int rms = 0; rms < 2; rms++) check_row(c, k->ops, 0, lengths[l], fill, parts, rms);
      for (unsigned parts = 0; parts < 32; parts++)
        for (size_t rows = 1; rows < 36 && lengths[l] < 1000; rows += 1 + rows * 2 / 3)
          check_row(c, k->ops, rows, lengths[l], fill, parts, (rows + parts) % 3 == 0);
      if (lengths[l]) check_flat(c, k->ops, lengths[l], fill);
    }
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
      for (size_t taps = 0; taps < 7; taps += 2) {
        check_neighbours(c, k->ops, lengths[l], taps, 1, 0.75f, fill, 1);
        check_neighbours(c, k->ops, lengths[l], taps + 1, 37, 2.0f, fill, 1);
        check_neighbours(c, k->ops, lengths[l], taps + 1, 1, 0.5f, fill, 0x1p100f);
        check_neighbours(c, k->ops, lengths[l], taps + 1, 1, 0.75f, fill, 0x1p107f);
      }
  for (size_t rows = 1; rows < 700; rows = rows * 5 + 2)
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
      for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
        check_columns(c, k->ops, rows, cols[i], fill);
}

struct job {
  const struct hn_norm_ops *ops;
  struct hn_norm_row r;
  size_t rows;
};
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->rows(&j->r, j->rows, NULL, NULL);
}

static void bench(ck *c, const struct hn_kernel *k) {
  enum { N = 768, ROWS = 16 };
  static const size_t lengths[] = {N, 24, 60, 192};
  const struct hn_kernel *scalar = hn_kernel_find("norm", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, N * ROWS, 0), *res = ck_alloc(c, N * ROWS, 0), *y = ck_alloc(c, N * ROWS, 0),
        *g = ck_alloc(c, N, 0);
  ck_fill(c, x, N * ROWS, CK_RANDOM);
  ck_fill(c, res, N * ROWS, CK_RANDOM);
  ck_fill(c, g, N, CK_RANDOM);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const size_t n = lengths[i];
    struct job j = {
        k->ops,
        {.x = x, .residual = n == N ? res : NULL, .gamma = g, .beta = g, .y = y, .n = n, .eps = 1e-5f},
        ROWS};
    const double t = ck_time(run_job, &j), all = (double)n * ROWS, inputs = n == N ? 2 : 1;
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "%slayer norm 16x%zu", n == N ? "add + " : "", n);
    ck_bench_line(
        c, label, t,
        &(ck_work){.instructions = (5 + inputs) * all, .read = 4 * inputs * all, .written = 4 * all}, ts);
  }
}

const ck_family ck_family_norm = {"norm", check, bench};
