#include "insight/profile/rank.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
  double value;
  bool second;
} ranked;

static int by_value(const void *pa, const void *pb) {
  const ranked *a = pa, *b = pb;
  return a->value < b->value ? -1 : a->value > b->value;
}

double hn_rank_test(const double *a, size_t na, const double *b, size_t nb) {
  if (na < 5 || nb < 5) return -1;
  size_t n = na + nb;
  ranked *all = hn_malloc(n * sizeof *all);
  if (!all) return -1;
  for (size_t i = 0; i < na; i++) all[i] = (ranked){a[i], false};
  for (size_t i = 0; i < nb; i++) all[na + i] = (ranked){b[i], true};
  qsort(all, n, sizeof *all, by_value);
  double ranks = 0, ties = 0; /* sum of the second set's ranks; sum of t^3 - t over groups of equals */
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && all[end].value == all[i].value; end++) {
    }
    double rank = 0.5 * (double)(i + 1 + end), t = (double)(end - i);
    for (size_t k = i; k < end; k++)
      if (all[k].second) ranks += rank;
    ties += t * t * t - t;
  }
  hn_free(all);
  double x = (double)na, y = (double)nb, m = (double)n;
  double u = ranks - y * (y + 1) / 2, mean = x * y / 2;
  double variance = x * y / 12 * (m + 1 - ties / (m * (m - 1)));
  if (variance <= 0) return 1; /* all equal */
  double distance = fabs(u - mean) - 0.5;
  return distance <= 0 ? 1 : erfc(distance / sqrt(variance) / sqrt(2));
}

/* Share of the orders of m and n values in which at most u pairs stand the other way round: coefficients of
 * the Gaussian binomial. Negative when out of memory. */
static double share_of_orders(size_t m, size_t n, size_t u) {
  const size_t size = m * n + 1;
  double *w = hn_calloc(size, sizeof *w), all = 0, part = 0;
  if (!w) return -1;
  w[0] = 1;
  for (size_t i = 1; i <= m; i++) {
    for (size_t k = size; k-- > n + i;) w[k] -= w[k - n - i];
    for (size_t k = i; k < size; k++) w[k] += w[k - i];
  }
  for (size_t k = 0; k < size; k++) {
    all += w[k];
    if (k <= u) part += w[k];
  }
  hn_free(w);
  return part / all;
}

double hn_rank_test_exact(const double *a, size_t na, const double *b, size_t nb, double alpha) {
  enum { FEW = 5, MOST = 1000 };
  const size_t few = na < nb ? na : nb, many = na < nb ? nb : na;
  if (few < 2 || few >= FEW || many > MOST) return -1;
  double above = 0; /* a tie counts half, and is then counted against the difference */
  for (size_t i = 0; i < na; i++)
    for (size_t k = 0; k < nb; k++) above += a[i] > b[k] ? 1 : a[i] == b[k] ? 0.5 : 0;
  const double pairs = (double)na * (double)nb;
  const double least = share_of_orders(few, many, 0);
  if (least < 0 || 2 * least > alpha) return -1;
  const double p = share_of_orders(few, many, (size_t)ceil(fmin(above, pairs - above)));
  return p < 0 ? -1 : fmin(1, 2 * p);
}

/* Continued fraction of the incomplete beta function (modified Lentz), for x below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double f = d;
  for (int m = 1; m <= 300; m++) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (int k = 0; k < 2; k++) {
      double term = k ? odd : even;
      d = 1 + term * d;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      c = 1 + term / c;
      if (fabs(c) < tiny) c = tiny;
      f *= c * d;
    }
    if (fabs(c * d - 1) < 1e-12) break;
  }
  return f;
}

static double beta_regularised(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  int sign; /* lgamma would write a global */
  double front =
      exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double hn_welch_test(const hone_sample_stats *a, const hone_sample_stats *b) {
  if (a->count < 2 || b->count < 2) return -1;
  double va = a->stddev * a->stddev / (double)a->count, vb = b->stddev * b->stddev / (double)b->count;
  double v = va + vb;
  if (!(v > 0)) return -1;
  double t = (a->mean - b->mean) / sqrt(v);
  double freedom = v * v / (va * va / (double)(a->count - 1) + vb * vb / (double)(b->count - 1));
  return beta_regularised(freedom / 2, 0.5, freedom / (freedom + t * t));
}
