/* Adapter of the reductions. Bounds: a sum of n terms in blocks of 4096 (rows) or 256 (columns, plus the
 * block sums) is off by at most (terms of one accumulation + 4) eps sum|x|; squares carry one rounding more;
 * products n eps. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/reduce/reduce.h"
#include "check.h"

static double neutral(hn_reduce_kind kind) {
  return kind == HN_REDUCE_PROD  ? 1
         : kind == HN_REDUCE_MAX ? -INFINITY
         : kind == HN_REDUCE_MIN ? INFINITY
                                 : 0;
}

static void expect(ck *c, size_t at, float got, hn_reduce_kind kind, const float *x, size_t n, size_t stride,
                   double terms) {
  double want = neutral(kind), mag = 0, extreme = 0, smallest = 1;
  for (size_t i = 0; i < n; i++) {
    const double v = (double)x[i * stride], a = fabs(v);
    switch (kind) {
    case HN_REDUCE_SUM: want += v, mag += a; break;
    case HN_REDUCE_ABS: want += a, mag += a; break;
    case HN_REDUCE_SQUARE: want += v * v, mag += v * v; break;
    case HN_REDUCE_PROD:
      want *= v, mag = fabs(want);
      extreme = fmax(extreme, mag);
      break;
    case HN_REDUCE_MAX: want = isnan(v) || isnan(want) ? NAN : fmax(want, v); break;
    default: want = isnan(v) || isnan(want) ? NAN : fmin(want, v); break;
    }
    smallest = fmin(smallest, a);
  }
  if (kind == HN_REDUCE_MAX || kind == HN_REDUCE_MIN) {
    ck_same(c, at, got, (float)want);
  } else if (kind == HN_REDUCE_PROD) {
    /* A partial product may leave the range on the way, in any order: only products that cannot are compared.
     */
    double hi = 1, lo = 1;
    for (size_t i = 0; i < n; i++) {
      const double a = fabs((double)x[i * stride]);
      hi *= fmax(a, 1), lo *= fmin(a, 1);
    }
    if (isfinite(want) && hi < FLT_MAX && lo > (double)FLT_MIN)
      ck_near(c, at, got, want, (double)(n + 40) * CK_EPS * fabs(want));
    else
      ck_true(c, isnan(want) ? isnan(got) : true, "a NaN reaches the product");
  } else {
    ck_near(c, at, got, want, (terms + 5) * CK_EPS * mag + (double)n * CK_TINY);
  }
}

static double smaller(double a, double b) { return a < b ? a : b; }

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 131, 1009, 4096, 4097, 9001};
  static const size_t cols[] = {1, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 131};
  static const size_t heights[] = {0, 1, 2, 49, 255, 256, 257, 700};
  const struct hn_reduce_ops *ops = k->ops;
  for (int kind = 0; kind < HN_REDUCE_COUNT; kind++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l];
        float *x = ck_alloc(c, n, n % 4);
        ck_fill(c, x, n, fill);
        ck_case(c, "row kind=%d n=%zu fill=%s", kind, n, ck_fill_name(fill));
        expect(c, 0, ops->row[kind](x, n), kind, x, n, 1, smaller((double)n, 4096));
        ck_release_all(c);
      }
      for (size_t l = 0; l < sizeof lengths / sizeof *lengths && lengths[l] < 300; l++)
        for (size_t rows = 0; rows < 40; rows += 1 + rows / 3) {
          const size_t n = lengths[l], ld = n + rows % 3, total = rows ? (rows - 1) * ld + n : 0;
          float *x = ck_alloc(c, total, n % 4), *y = ck_alloc(c, rows, rows % 3);
          ck_fill(c, x, total, fill);
          ck_case(c, "rows kind=%d rows=%zu n=%zu fill=%s", kind, rows, n, ck_fill_name(fill));
          ops->rows[kind](y, x, rows, n, (ptrdiff_t)ld);
          for (size_t r = 0; r < rows; r++)
            expect(c, r, y[r], kind, x + (total ? r * ld : 0), n, 1, (double)n);
          ck_release_all(c);
        }
      for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        for (size_t r = 0; r < sizeof heights / sizeof *heights; r++) {
          const size_t rows = heights[r], w = cols[i], ld = w + r % 3, total = rows ? (rows - 1) * ld + w : 0;
          float *x = ck_alloc(c, total, 0), *y = ck_alloc(c, w, i % 3);
          ck_fill(c, x, total, fill);
          ck_case(c, "columns kind=%d rows=%zu cols=%zu fill=%s", kind, rows, w, ck_fill_name(fill));
          ops->columns[kind](y, x, rows, w, (ptrdiff_t)ld);
          for (size_t j = 0; j < w; j++)
            expect(c, j, y[j], kind, x + (total ? j : 0), rows, ld,
                   smaller((double)rows, 256) + (double)rows / 256);
          ck_release_all(c);
        }
      if (ck_failed(c)) return;
    }
}

struct job {
  const struct hn_reduce_ops *ops;
  float *y;
  const float *x;
  size_t n; /* of a row; 0: columns */
};
static void run_job(void *arg) {
  struct job *j = arg;
  if (j->n == 0)
    j->ops->columns[HN_REDUCE_SUM](j->y, j->x, 49, 2048, 2048);
  else
    j->ops->rows[HN_REDUCE_SUM](j->y, j->x, 2048, j->n, (ptrdiff_t)j->n);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {0, 10, 49, 1000};
  const struct hn_kernel *scalar = hn_kernel_find("reduce", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, 1000 * 2048, 0), *y = ck_alloc(c, 2048, 0);
  ck_fill(c, x, 1000 * 2048, CK_RANDOM);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    struct job j = {k->ops, y, x, lengths[i]};
    const double t = ck_time(run_job, &j), n = 2048.0 * (double)(j.n ? j.n : 49);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48] = "sum of columns 49x2048";
    if (j.n) snprintf(label, sizeof label, "sum of 2048 rows of %zu", j.n);
    ck_bench_line(c, label, t, &(ck_work){.instructions = n, .read = 4 * n, .written = 4.0 * 2048}, ts);
  }
}

const ck_family ck_family_reduce = {"reduce", check, bench};
