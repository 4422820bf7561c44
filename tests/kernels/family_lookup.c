/* Adapter of lookups by index: bits move, so every comparison is exact. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/kernels/lookup/lookup.h"
#include "check.h"

/* Room for n numbers of `bytes` bytes that ends at a guard page. */
static void *room(ck *c, size_t n, size_t bytes) { return ck_alloc(c, n * bytes / sizeof(float), 0); }

/* Index i of n in a dimension: both signs, the first and last places; `outside` one (or n: none) is not in
 * it. */
static int64_t draw(ck *c, size_t i, uint32_t dim, size_t outside, bool wide) {
  const int64_t d = dim, wrong[] = {d, -d - 1, wide ? INT64_MAX : INT32_MAX, wide ? INT64_MIN : INT32_MIN};
  if (i == outside) return wrong[ck_random(c) % 4];
  if (i % 5 == 0) return i % 2 ? d - 1 : -d;
  const int64_t at = (int64_t)(ck_random(c) % dim);
  return ck_random(c) % 2 ? at - d : at;
}

static void check_case(ck *c, const struct hn_lookup_ops *ops, size_t n, uint32_t dim, size_t outside,
                       bool wide) {
  void *index = room(c, n, wide ? 8 : 4);
  uint32_t *place = room(c, n, 4), *x = room(c, dim <= ops->most ? dim : 0, 4), *y = room(c, n, 4);
  uint32_t *want = calloc(n + 1, sizeof *want);
  if (!want) exit(6);
  for (size_t i = 0; i < n; i++) {
    const int64_t v = draw(c, i, dim, outside, wide), at = v < 0 ? v + dim : v;
    if (wide)
      ((int64_t *)index)[i] = v;
    else
      ((int32_t *)index)[i] = (int32_t)v;
    want[i] = i == outside ? 0 : (uint32_t)at;
  }
  ck_case(c, "%zu of %u, %s, %zu outside", n, dim, wide ? "i64" : "i32", outside);
  bool said = wide ? ops->places_i64(place, index, n, dim) : ops->places_i32(place, index, n, dim);
  ck_true(c, said == (outside < n), "an index outside is noticed, and nothing else");
  for (size_t i = 0; i < n; i++) ck_same(c, i, (float)place[i], (float)want[i]);
  if (dim <= ops->most) {
    for (uint32_t i = 0; i < dim; i++) x[i] = i * 3 + 1;
    said = wide ? ops->words_i64(y, x, index, n, dim) : ops->words_i32(y, x, index, n, dim);
    ck_true(c, said == (outside < n), "an index outside is noticed, and nothing else");
    for (size_t i = 0; i < n; i++)
      if (i != outside) ck_same(c, i, (float)y[i], (float)(want[i] * 3 + 1));
  }
  free(want);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t counts[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100};
  static const uint32_t dims[] = {1,  2,  15,  16,  17,  31,   32,          33,        63,
                                  64, 65, 127, 128, 129, 1000, 0x80000000u, UINT32_MAX};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
      for (int wide = 0; wide < 2; wide++) {
        const size_t n = counts[i];
        if (!wide && dims[d] > 1000) continue;
        check_case(c, k->ops, n, dims[d], n, wide);
        for (size_t o = 0; o < n; o += n / 3 + 1) check_case(c, k->ops, n, dims[d], o, wide);
        if (n) check_case(c, k->ops, n, dims[d], n - 1, wide);
      }
}

struct job {
  const struct hn_lookup_ops *ops;
  uint32_t *y;
  const uint32_t *x;
  const int64_t *index;
  size_t n;
  uint32_t dim;
};
static void run_job(void *arg) {
  const struct job *j = arg;
  if (j->dim <= j->ops->most)
    j->ops->words_i64(j->y, j->x, j->index, j->n, j->dim);
  else
    j->ops->places_i64(j->y, j->index, j->n, j->dim);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const uint32_t dims[] = {64, 128, 1000};
  enum { N = 4096 };
  const struct hn_kernel *scalar = hn_kernel_find("lookup", "words", HN_ISA_SCALAR);
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
    int64_t *index = room(c, N, 8);
    uint32_t *x = room(c, dims[d], 4), *y = room(c, N, 4);
    for (size_t i = 0; i < N; i++) index[i] = draw(c, i, dims[d], N, true);
    for (uint32_t i = 0; i < dims[d]; i++) x[i] = i;
    struct job j = {k->ops, y, x, index, N, dims[d]};
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "%d of %u, i64", (int)N, dims[d]);
    ck_bench_line(c, label, t, &(ck_work){.read = 8.0 * N, .written = 4.0 * N}, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_lookup = {"lookup", check, bench};
