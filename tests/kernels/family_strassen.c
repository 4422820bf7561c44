/* Adapter of the sums of quarters, and of the products that stand on them.
 *
 * Sums are exact in f32 arithmetic. A product's bound: with a the largest number of the two rows that meet
 * and b that of the two columns, C12 and C22 are sums of four products of k / 2 terms each, of sums of
 * quarters that are at most 1 x 1, 3 x 3, 2 x 2 and 4 x 1 or 2 x 2 times a b: 18 in all. Each term carries
 * the roundings of its sums (at most 3 + 3), of its product and its sum (k / 2), and of four more sums. Where
 * rows or columns must not meet, the usual bound holds for each alone; B12 = T1 + B11 carries two roundings
 * of b11 and b12. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/strassen/strassen.h"
#include "backends/cpu/product/strassen_driver.h"
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

/* Tasks on three threads' scratch, one after the other. */
static void serial(void *pool, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                   void *arg) {
  for (int64_t i = 0; i < tasks; i++) fn(arg, i, pool ? (uint32_t)(i % 3) : 0);
}

enum kind { EVEN, NAN_IN_B, WITH_NAN, WITH_INF, UNLIKE_ROWS, UNLIKE_COLUMNS, ZERO_ROWS, LARGE, KINDS };
static const char *const kinds[] = {"even",           "nan",       "inf",  "unlike rows",
                                    "unlike columns", "zero rows", "large"};

static void fill_operands(ck *c, float *a, float *b, int64_t m, int64_t n, int64_t k, enum kind kind) {
  ck_fill(c, a, (size_t)(m * k), CK_RANDOM);
  ck_fill(c, b, (size_t)(k * n), CK_RANDOM);
  if (kind == WITH_NAN) a[m / 2 * k + k / 3] = NAN;
  if (kind == NAN_IN_B) b[n + n / 3] = NAN;
  if (kind == WITH_INF) a[(m - 1) * k] = -INFINITY;
  if (kind == LARGE) a[k - 1] = 1e38f;
  for (int64_t i = 0; i < k && kind == UNLIKE_ROWS; i++) a[i] *= 1e6f;
  for (int64_t i = 0; i < k && kind == UNLIKE_COLUMNS; i++) b[i * n] *= 1e6f;
  for (int64_t i = 0; i < k && kind == ZERO_ROWS; i++) a[i] = a[(m - 1) * k + i] = 0;
}

static float most_of(const float *x, int64_t n, int64_t step) {
  float most = 0;
  for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i * step]));
  return most;
}

static void check_product(ck *c, hn_isa isa, int64_t m, int64_t k, int64_t columns, enum kind kind,
                          bool epilogue, uint32_t threads) {
  const int64_t n = columns * 2 * hn_gemm_find(isa)->nr;
  hn_strassen p = {.isa = isa, .m = m, .n = n, .k = k, .a_row = k};
  ck_case(c, "product %lldx%lldx%lld %s epilogue=%d threads=%u", (long long)m, (long long)k, (long long)n,
          kinds[kind], epilogue, threads);
  if (!hn_strassen_plan(&p, threads, 48u << 10, 256u << 10)) {
    ck_true(c, false, "refused");
    return;
  }
  float *a = ck_alloc(c, (size_t)(m * k), 0), *b = ck_alloc(c, (size_t)(k * n), 0),
        *y = ck_alloc(c, (size_t)(m * n), 0), *packed = ck_alloc(c, hn_strassen_packed(&p), 0),
        *space = ck_alloc(c, hn_strassen_workspace(&p, threads), 0), *bias = ck_alloc(c, (size_t)n, 0),
        *residual = ck_alloc(c, (size_t)(m * n), 0);
  fill_operands(c, a, b, m, n, k, kind);
  ck_fill(c, bias, (size_t)n, CK_RANDOM);
  ck_fill(c, residual, (size_t)(m * n), CK_RANDOM);
  float *turned = ck_alloc(c, (size_t)(k * n), 0); /* half of B, transposed */
  for (int64_t i = 0; i < k * n; i++) turned[i % n * k + i / n] = 0.5f * b[i];
  ck_true(c,
          epilogue ? hn_strassen_pack(&p, turned, 1, k, 2, packed) : hn_strassen_pack(&p, b, n, 1, 1, packed),
          "no memory");
  ck_true(c, (p.plain != 0) == (kind == UNLIKE_COLUMNS || kind == NAN_IN_B),
          "columns that meet are misjudged");
  hn_epilogue e = {.flags = epilogue ? HN_EPI_BIAS | HN_EPI_RESIDUAL | HN_EPI_CLAMP : 0,
                   .lo = -0.5f,
                   .hi = 0.75f * (float)k,
                   .bias = epilogue ? bias : NULL,
                   .residual = epilogue ? residual : NULL,
                   .residual_view = {0, 0, 0, n}};
  hn_strassen_exec(&p, a, packed, y, &e, space, serial, threads > 1 ? &p : NULL);
  const bool alone = kind != EVEN && kind != ZERO_ROWS;
  for (int64_t i = 0; i < m; i++) {
    const int64_t first = i / p.rows * p.rows, rows = m - first < p.rows ? m - first : p.rows,
                  upper = (rows + 1) / 2, at = i - first,
                  other = first + (at < upper ? at + upper : at - upper);
    const float mine = most_of(a + i * k, k, 1),
                most = fmaxf(mine, other < first + rows ? most_of(a + other * k, k, 1) : 0);
    for (int64_t j = 0; j < n; j++) {
      const int64_t beside = j < n / 2 ? j + n / 2 : j - n / 2;
      double want = 0, size = 0;
      for (int64_t d = 0; d < k; d++) {
        const double x = (double)a[i * k + d], w = (double)b[d * n + j];
        want += x * w;
        size += fabs(x) * (fabs(w) + (alone && !p.plain ? fabs((double)b[d * n + beside]) : 0));
      }
      const double half = (double)k / 2;
      double bound = alone ? ((double)k + 4) * CK_EPS * size
                           : (half + 11) * CK_EPS * 18 * half * (double)most *
                                 fmax((double)most_of(b + j, k, n), (double)most_of(b + beside, k, n));
      if (mine == 0) bound = 0;
      if (epilogue) {
        const double before = fabs(want);
        want += (double)bias[j];
        want += (double)residual[i * n + j];
        bound += 2 * CK_EPS * (before + 2 + fabs(want));
        want = isnan(want) ? want : fmin(fmax(want, (double)e.lo), (double)e.hi);
      }
      ck_near(c, (size_t)(i * n + j), y[i * n + j], want, isfinite(bound) ? bound : 0);
    }
  }
  ck_release_all(c);
}

static void check_products(ck *c, hn_isa isa) {
  static const int64_t sizes[][3] = {{2, 2, 1},    {3, 34, 2},   {28, 64, 5}, {29, 66, 1},
                                     {61, 130, 3}, {403, 32, 1}, {40, 900, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int epilogue = 0; epilogue < 2; epilogue++)
        check_product(c, isa, sizes[i][0], sizes[i][1], sizes[i][2], kind, epilogue, i % 2 ? 3 : 1);
}

static void check(ck *c, const struct hn_kernel *k) {
  check_products(c, k->isa);
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
