/* Adapter of what goes from token to token: a token of linear attention and causal convolutions, against
 * sums in f64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/state/state.h"
#include "check.h"

enum { MOST_K = 24, MOST_V = 160, MOST_QUERIES = 3 };

static void check_linear(ck *c, const hn_state_ops *ops, size_t d_k, size_t n, bool decays, bool delta,
                         size_t queries, bool apart) {
  const size_t s_row = n + 3, q_row = d_k + 1, y_row = n + 2, from_row = apart ? n + 1 : s_row;
  float *from = apart ? ck_alloc(c, (d_k - 1) * from_row + n, 0) : NULL;
  float *s = ck_alloc(c, (d_k - 1) * s_row + n, 0), *k = ck_alloc(c, d_k, 0), *v = ck_alloc(c, n, 0),
        *decay = ck_alloc(c, d_k, 0), *beta = ck_alloc(c, 1, 0),
        *q = ck_alloc(c, (queries - 1) * q_row + d_k, 0), *y = ck_alloc(c, queries * y_row, 0);
  static double before[MOST_K][MOST_V];
  ck_fill(c, s, (d_k - 1) * s_row + n, CK_RANDOM);
  ck_fill(c, k, d_k, CK_RANDOM);
  ck_fill(c, v, n, CK_RANDOM);
  ck_fill(c, decay, d_k, CK_RANDOM);
  ck_fill(c, beta, 1, CK_RANDOM);
  ck_fill(c, q, (queries - 1) * q_row + d_k, CK_RANDOM);
  for (size_t i = 0; i < d_k; i++)
    for (size_t j = 0; j < n; j++) before[i][j] = (double)s[i * s_row + j];
  for (size_t i = 0; from && i < d_k; i++) {
    memcpy(from + i * from_row, s + i * s_row, n * sizeof *s);
    for (size_t j = 0; j < n; j++) s[i * s_row + j] = NAN; /* which nothing may read */
  }
  for (size_t i = 0; i < queries * y_row; i++) y[i] = 0;
  ck_case(c, "linear d_k=%zu columns=%zu decays=%d delta=%d queries=%zu apart=%d", d_k, n, decays, delta,
          queries, apart);
  ops->linear(&(hn_linear_token){.s = s,
                                 .s_row = (ptrdiff_t)s_row,
                                 .from = from,
                                 .from_row = (ptrdiff_t)from_row,
                                 .d_k = d_k,
                                 .columns = n,
                                 .k = k,
                                 .v = v,
                                 .decay = decays ? decay : NULL,
                                 .beta = delta ? beta : NULL,
                                 .q = q,
                                 .q_row = (ptrdiff_t)q_row,
                                 .y_row = (ptrdiff_t)y_row,
                                 .queries = queries,
                                 .scale = 0.3f,
                                 .y = y});
  for (size_t j = 0; j < n; j++) {
    double value = (double)v[j], kept = 0, size = 0, sum[MOST_QUERIES] = {0}, sums[MOST_QUERIES] = {0};
    for (size_t i = 0; i < d_k; i++) {
      const double p = before[i][j] * (decays ? (double)decay[i] : 1) * (double)k[i];
      kept += p, size += fabs(p);
    }
    if (delta) value = (double)*beta * (value - kept);
    const double off = delta ? (double)(d_k + 6) * CK_EPS * (size + fabs((double)v[j])) : 0;
    for (size_t i = 0; i < d_k; i++) {
      const double old = before[i][j] * (decays ? (double)decay[i] : 1), add = (double)k[i] * value;
      const double err = fabs((double)k[i]) * off + 3 * CK_EPS * (fabs(old) + fabs(add)) + CK_TINY;
      ck_near(c, i * n + j, s[i * s_row + j], old + add, err);
      for (size_t h = 0; h < queries; h++) {
        const double w = (double)q[h * q_row + i];
        sum[h] += w * (old + add);
        sums[h] += fabs(w) * (err + (double)(d_k + 3) * CK_EPS * (fabs(old) + fabs(add)));
      }
    }
    for (size_t h = 0; h < queries; h++)
      ck_near(c, h * n + j, y[h * y_row + j], (double)0.3f * sum[h],
              0.31 * sums[h] + CK_EPS * fabs(sum[h]) + CK_TINY);
  }
  ck_release_all(c);
}

static void check_causal(ck *c, const hn_state_ops *ops, size_t n, size_t taps, bool swish) {
  float *x = ck_alloc(c, n + taps - 1, 0), *w = ck_alloc(c, taps, 0), *y = ck_alloc(c, n, n % 2);
  ck_fill(c, x, n + taps - 1, CK_RANDOM);
  ck_fill(c, w, taps, CK_RANDOM);
  ck_case(c, "causal n=%zu taps=%zu swish=%d", n, taps, swish);
  ops->causal(y, x, n, w, taps, 0.25f, swish);
  for (size_t i = 0; i < n; i++) {
    double sum = 0.25, size = 0.25;
    for (size_t k = 0; k < taps; k++) {
      const double p = (double)w[k] * (double)x[i + k];
      sum += p, size += fabs(p);
    }
    const double off = (double)(taps + 2) * CK_EPS * size, want = swish ? sum / (1 + exp(-sum)) : sum;
    /* the derivative of x sigmoid(x) is below 1.1 */
    ck_near(c, i, y[i], want, (swish ? 1.1 : 1) * off + 8 * CK_EPS * fabs(want) + CK_TINY);
  }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t columns[] = {1, 3, 8, 15, 16, 17, 31, 64, 70, 131};
  const hn_state_ops *ops = k->ops;
  for (size_t n = 0; n < sizeof columns / sizeof *columns; n++) {
    for (size_t d_k = 1; d_k < MOST_K; d_k += 7)
      for (int form = 0; form < 4; form++)
        check_linear(c, ops, d_k, columns[n], form & 1, form & 2, 1 + d_k % MOST_QUERIES, n % 2);
    for (size_t taps = 1; taps < 7; taps++)
      for (int swish = 0; swish < 2; swish++) check_causal(c, ops, columns[n], taps, swish);
    float *x = ck_alloc(c, columns[n], 0), *y = ck_alloc(c, columns[n], 0);
    ck_fill(c, x, columns[n], CK_RANDOM);
    ck_case(c, "exp n=%zu", columns[n]);
    ops->exp(y, x, columns[n]);
    for (size_t i = 0; i < columns[n]; i++)
      ck_near(c, i, y[i], exp((double)x[i]), 3 * CK_EPS * exp((double)x[i]));
    ck_release_all(c);
  }
}

struct job {
  const hn_state_ops *ops;
  hn_linear_token t;
  float *x;
};
static void run_linear(void *arg) {
  struct job *j = arg;
  j->ops->linear(&j->t);
}
static void run_causal(void *arg) {
  struct job *j = arg;
  j->ops->causal(j->t.y, j->x, 1024, j->x, 4, 0.1f, true);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("state", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, 1027, 0), *s = ck_alloc(c, 64 * 64, 0), *y = ck_alloc(c, 1024, 0);
  ck_fill(c, x, 1027, CK_RANDOM);
  ck_fill(c, s, 64 * 64, CK_RANDOM);
  for (size_t i = 0; i < 1027; i++) x[i] *= 0.05f; /* states stay small */
  struct job j = {k->ops, {s, 64, NULL, 0, 64, 64, x, x + 64, x + 128, x + 200, x + 300, 0, 0, 1, 1, y}, x};
  for (int causal = 0; causal < 2; causal++) {
    j.ops = k->ops;
    const double t = ck_time(causal ? run_causal : run_linear, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(causal ? run_causal : run_linear, &j);
    const ck_work work =
        causal ? (ck_work){.flops = 8.0 * 1024, .instructions = 20.0 * 1024, .read = 4096, .written = 4096}
               : (ck_work){.flops = 6.0 * 64 * 64,
                           .instructions = 64 * 64,
                           .read = 2 * 4 * 64 * 64,
                           .written = 4 * 64 * 64};
    ck_bench_line(c, causal ? "causal, swish, 1024" : "gated delta 64x64", t, &work, ts);
  }
}

const ck_family ck_family_state = {"state", check, bench};
