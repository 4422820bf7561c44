/* Adapter of the sums of quarters: each result by the roundings of its additions. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/strassen/strassen.h"
#include "check.h"

static void check_split(ck *c, const struct hn_strassen_ops *ops, size_t n, enum ck_fill fill, bool lower) {
  float *a = ck_alloc(c, 2 * n, n % 3), *b = ck_alloc(c, 2 * n, 0), *to[HN_STRASSEN_SUMS], most[2];
  for (int k = 0; k < HN_STRASSEN_SUMS; k++) to[k] = ck_alloc(c, n, (size_t)k % 2);
  ck_fill(c, a, 2 * n, fill);
  ck_fill(c, b, 2 * n, fill);
  ck_case(c, "split n=%zu fill=%s lower=%d", n, ck_fill_name(fill), lower);
  ops->split(to, a, lower ? b : NULL, n, most);
  float want[2] = {0, 0};
  for (size_t i = 0; i < n; i++) {
    const float a11 = a[i], a12 = a[n + i], a21 = lower ? b[i] : 0, a22 = lower ? b[n + i] : 0;
    const float s1 = a21 + a22, s2 = s1 - a11;
    const float s[HN_STRASSEN_SUMS] = {a11, s1, s2, a11 - a21, a12, a12 - s2, a22};
    for (int k = 0; k < HN_STRASSEN_SUMS; k++) ck_same(c, (size_t)k * n + i, to[k][i], s[k]);
    const float above[2] = {fabsf(a11), fabsf(a12)}, below[2] = {fabsf(a21), fabsf(a22)};
    for (int k = 0; k < 2; k++) {
      if (!(above[k] <= want[0]) && !isnan(want[0])) want[0] = above[k];
      if (!(below[k] <= want[1]) && !isnan(want[1])) want[1] = below[k];
    }
  }
  ck_same(c, HN_STRASSEN_SUMS * n, most[0], want[0]);
  ck_same(c, HN_STRASSEN_SUMS * n + 1, most[1], want[1]);
  ck_release_all(c);
}

static void check_join(ck *c, const struct hn_strassen_ops *ops, size_t n, enum ck_fill fill, bool lower) {
  float *p[4], *to[4];
  for (int k = 0; k < 4; k++) {
    p[k] = ck_alloc(c, n, (size_t)k % 3);
    to[k] = ck_alloc(c, n, (size_t)k % 2);
    ck_fill(c, p[k], n, fill);
  }
  ck_case(c, "join n=%zu fill=%s lower=%d", n, ck_fill_name(fill), lower);
  ops->join((float *const[]){to[0], to[1], lower ? to[2] : NULL, lower ? to[3] : NULL},
            (const float *const[]){p[0], p[1], p[2], p[3]}, n);
  for (size_t i = 0; i < n; i++) {
    const float u2 = p[0][i] + p[2][i], u3 = u2 + p[3][i];
    ck_same(c, i, to[0][i], p[0][i]);
    ck_same(c, n + i, to[1][i], u2 + p[1][i]);
    if (!lower) continue;
    ck_same(c, 2 * n + i, to[2][i], u3);
    ck_same(c, 3 * n + i, to[3][i], u3 + p[1][i]);
  }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 32, 33, 61, 384};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int fill = 0; fill < CK_FILLS; fill++)
      for (int lower = 0; lower < 2; lower++) {
        check_split(c, k->ops, lengths[l], fill, lower);
        check_join(c, k->ops, lengths[l], fill, lower);
      }
}

enum { N = 384 };
struct job {
  const struct hn_strassen_ops *ops;
  float *to[HN_STRASSEN_SUMS], *a, *b;
};
static void run_job(void *arg) {
  struct job *j = arg;
  float most[2];
  j->ops->split(j->to, j->a, j->b, N, most);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("strassen", "f32", HN_ISA_SCALAR);
  struct job j = {.ops = k->ops, .a = ck_alloc(c, 2 * N, 0), .b = ck_alloc(c, 2 * N, 0)};
  for (int i = 0; i < HN_STRASSEN_SUMS; i++) j.to[i] = ck_alloc(c, N, 0);
  ck_fill(c, j.a, 2 * N, CK_RANDOM);
  ck_fill(c, j.b, 2 * N, CK_RANDOM);
  const double t = ck_time(run_job, &j);
  j.ops = scalar->ops;
  const double ts = k == scalar ? 0 : ck_time(run_job, &j);
  /* four additions, four magnitudes and maxima that keep NaN, three instructions each */
  ck_bench_line(c, "split 2x768", t,
                &(ck_work){.instructions = 20.0 * N, .read = 16.0 * N, .written = 28.0 * N}, ts);
}

const ck_family ck_family_strassen = {"strassen", check, bench};
