/* Adapter of products of wide numbers. Integers wrap and are exact. Bound of f64: (k + 2) eps times the sum
 * of the products' sizes, against sums in long double. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/wide/wide.h"
#include "check.h"

enum { LARGEST_ROWS = 8, LARGEST_COLUMNS = 64 };

static const char *const names[HN_WIDE_TYPES] = {"f64", "w32", "w64"};
static const size_t sizes[HN_WIDE_TYPES] = {sizeof(double), sizeof(uint32_t), sizeof(uint64_t)};

static void *room(ck *c, hn_wide_type t, size_t n) { return ck_alloc(c, n * sizes[t] / sizeof(float), 0); }

static void *numbers(ck *c, hn_wide_type t, size_t n) {
  void *x = room(c, t, n);
  for (size_t i = 0; i < n; i++) {
    const uint64_t bits = ck_random(c);
    if (t == HN_WIDE_F64)
      ((double *)x)[i] = (double)(int64_t)bits * 0x1p-63;
    else if (t == HN_WIDE_W32)
      ((uint32_t *)x)[i] = (uint32_t)bits;
    else
      ((uint64_t *)x)[i] = bits;
  }
  return x;
}

static uint64_t integer(hn_wide_type t, const void *x, size_t i) {
  return t == HN_WIDE_W32 ? ((const uint32_t *)x)[i] : ((const uint64_t *)x)[i];
}

/* One element of the result; `before`: what it was, where that counts. */
static void one(ck *c, hn_wide_type t, const void *y, size_t at, const void *before, const void *a,
                size_t row, size_t step, const void *b, size_t column, size_t pitch, size_t k) {
  if (t == HN_WIDE_F64) {
    const double *x = a, *w = b;
    long double sum = before ? ((const double *)before)[at] : 0;
    double size = fabs((double)sum);
    for (size_t p = 0; p < k; p++) {
      sum += (long double)x[row + p * step] * w[column + p * pitch];
      size += fabs(x[row + p * step] * w[column + p * pitch]);
    }
    ck_true(c, fabs(((const double *)y)[at] - (double)sum) <= (double)(k + 2) * 0x1p-53 * size, "f64 sum");
    return;
  }
  uint64_t sum = before ? integer(t, before, at) : 0;
  for (size_t p = 0; p < k; p++) sum += integer(t, a, row + p * step) * integer(t, b, column + p * pitch);
  ck_true(c, integer(t, y, at) == (t == HN_WIDE_W32 ? (uint32_t)sum : sum), "integer sum");
}

static void check_tile(ck *c, const struct hn_wide_product *o, hn_wide_type t, size_t m, int32_t vectors,
                       size_t k, bool add) {
  const size_t wide = (size_t)o->columns, n = (size_t)(vectors * o->lanes), rows = (size_t)o->rows,
               ldc = n + 3, all = (m - 1) * ldc + n;
  const void *a = numbers(c, t, k * rows), *b = numbers(c, t, k * wide);
  void *before = numbers(c, t, all), *y = room(c, t, all);
  for (size_t i = 0; i < all * sizes[t]; i++) ((char *)y)[i] = ((char *)before)[i];
  ck_case(c, "%s, %zu rows, %d vectors, %zu products%s", names[t], m, vectors, k, add ? ", added" : "");
  o->tile(y, (int64_t)ldc, a, b, (int32_t)m, vectors, (int64_t)k, add);
  for (size_t i = 0; i < all; i++) {
    const size_t r = i / ldc, column = i % ldc;
    if (column < n)
      one(c, t, y, i, add ? before : NULL, a, r, rows, b, column, wide, k);
    else
      ck_true(c, integer(t, y, i) == integer(t, before, i), "between the rows nothing is written");
  }
  ck_release_all(c);
}

static void check_dots(ck *c, const struct hn_wide_product *o, hn_wide_type t, size_t m, size_t k) {
  const void *a = numbers(c, t, (m - 1) * (k + 1) + k), *x = numbers(c, t, k);
  void *y = room(c, t, 2 * m - 1);
  ck_case(c, "%s, %zu dot products of %zu", names[t], m, k);
  o->dots(y, 2, a, (int64_t)k + 1, x, (int64_t)m, (int64_t)k);
  for (size_t r = 0; r < m; r++) one(c, t, y, 2 * r, NULL, a, r * (k + 1), 1, x, 0, 1, k);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  const struct hn_wide_ops *ops = k->ops;
  for (int t = 0; t < HN_WIDE_TYPES; t++) {
    const struct hn_wide_product *o = &ops->of[t];
    ck_case(c, "sizes");
    ck_true(c,
            o->rows > 0 && o->rows <= LARGEST_ROWS && o->columns > 0 && o->columns <= LARGEST_COLUMNS &&
                o->columns % o->lanes == 0,
            "a tile of usual size");
    for (size_t m = 1; m <= (size_t)o->rows && !ck_failed(c); m++)
      for (size_t n = 1; n <= 40; n += n < 4 ? 1 : 12)
        for (int v = 1; v <= o->columns / o->lanes; v++)
          for (int add = 0; add < 2; add++) check_tile(c, o, (hn_wide_type)t, m, v, n, add);
    for (size_t m = 1; m <= 9 && !ck_failed(c); m++)
      for (size_t n = 1; n <= 70; n += n < 20 ? 1 : 7) check_dots(c, o, (hn_wide_type)t, m, n);
  }
}

struct job {
  const struct hn_wide_product *o;
  void *y;
  const void *a, *b;
  int64_t k;
};
static void run_job(void *arg) {
  struct job *j = arg;
  for (int32_t r = 0; r < LARGEST_ROWS; r += j->o->rows)
    j->o->tile(j->y, j->o->columns, j->a, j->b, j->o->rows, j->o->columns / j->o->lanes, j->k, false);
}

static void bench(ck *c, const struct hn_kernel *k) {
  enum { DEPTH = 256 };
  for (int t = 0; t < HN_WIDE_TYPES; t++) {
    const struct hn_wide_product *o = &((const struct hn_wide_ops *)k->ops)->of[t];
    struct job j = {o, numbers(c, (hn_wide_type)t, (size_t)(LARGEST_ROWS * o->columns)),
                    numbers(c, (hn_wide_type)t, LARGEST_ROWS * DEPTH),
                    numbers(c, (hn_wide_type)t, (size_t)(DEPTH * o->columns)), DEPTH};
    const double n = LARGEST_ROWS * DEPTH * o->columns, wide = (double)sizes[t] / 4;
    /* A number of 8 bytes takes the place of two floats. */
    ck_bench_line(c, names[t], ck_time(run_job, &j),
                  &(ck_work){.flops = 2 * n * wide, .read = (double)(DEPTH * o->columns) * 4 * wide}, 0);
  }
}

const ck_family ck_family_wide = {"wide", check, bench};
