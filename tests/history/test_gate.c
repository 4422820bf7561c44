/* The gate's statistics against counting by hand, and its verdicts at both ends. */
#include "history/noise.h"

#include <hone/hone.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hone_gate_result pairs(const double *a, const double *b, uint32_t n, double threshold) {
  hone_gate_result r;
  hone_error e = {0};
  if (hone_gate_pairs(a, b, n, &(hone_gate_options){.threshold = threshold}, &r, &e) != HONE_OK)
    fail_msg("%s", e.what);
  return r;
}

/* P(W+ >= seen) by trying all signs: ranks by counting, no sorting, no recursion. */
static double by_enumeration(const double *d, int n) {
  double rank[12], seen = 0;
  for (int i = 0; i < n; i++) {
    double below = 0, equal = 0;
    for (int k = 0; k < n; k++) {
      below += fabs(d[k]) < fabs(d[i]);
      equal += fabs(d[k]) == fabs(d[i]);
    }
    rank[i] = below + (equal + 1) / 2;
    if (d[i] > 0) seen += rank[i];
  }
  int hits = 0;
  for (int s = 0; s < 1 << n; s++) {
    double w = 0;
    for (int i = 0; i < n; i++) w += s >> i & 1 ? rank[i] : 0;
    hits += w >= seen - 1e-9;
  }
  return (double)hits / (1 << n);
}

static void test_exact(void **unused) {
  (void)unused;
  double a[12], b[12], d[12];
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < 12; i++) {
      /* Every other round with ties: few different ratios, all powers of two, so that logarithms are equal.
       */
      int k = 1 + (int)(uniform() * 4);
      double size = round % 2 ? ldexp(1, k) : exp(0.5 * normal());
      bool up = uniform() < 0.6;
      a[i] = round % 2 ? (up ? 1 : size) : 1 + uniform();
      b[i] = round % 2 ? (up ? size : 1) : a[i] * (up ? fmax(size, 1.001) : fmin(1 / size, 0.999));
      d[i] = log(b[i] / a[i]);
    }
    hone_gate_result r = pairs(a, b, 12, 0.05);
    double want = by_enumeration(d, 12);
    if (fabs(r.p_slower - want) > 1e-12)
      fail_msg("round %d: %.15g, by enumeration %.15g", round, r.p_slower, want);
  }
}

static void fill(double *a, double *b, uint32_t n, double change, double noise) {
  for (uint32_t i = 0; i < n; i++) {
    a[i] = 7 * exp(noise * normal());
    b[i] = 7 * (1 + change) * exp(noise * normal());
  }
}

static void test_verdicts(void **unused) {
  (void)unused;
  double a[60], b[60];
  const struct {
    double change, noise, threshold;
    hone_gate_verdict want;
    const char *words;
  } cases[] = {
      {0.10, 0.01, 0.05, HONE_GATE_WORSE, "slower by"},   {0.0, 0.01, 0.05, HONE_GATE_SAME, "ruled out"},
      {-0.10, 0.01, 0.05, HONE_GATE_BETTER, "ruled out"}, {0.01, 0.002, 0.05, HONE_GATE_SAME, "ruled out"},
      {0.05, 0.30, 0.05, HONE_GATE_NONE, "too noisy"},    {0.01, 0.002, 0.01, HONE_GATE_WORSE, "slower by"},
      {0.05, 0.01, 0.50, HONE_GATE_SAME, "ruled out"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fill(a, b, 60, cases[i].change, cases[i].noise);
    hone_gate_result r = pairs(a, b, 60, cases[i].threshold);
    if (r.verdict != cases[i].want || !strstr(r.reason, cases[i].words))
      fail_msg("case %zu: %s, %s", i, hone_gate_verdict_name(r.verdict), r.reason);
    assert_true(r.decided && r.look == 0 && r.paired);
    assert_true(r.low <= r.change && r.change <= r.high);
    assert_true(fabs(r.change - cases[i].change) < 4 * cases[i].noise / sqrt(r.pairs) + 1e-3);
    assert_true(r.noise > cases[i].noise / 2 && r.noise < cases[i].noise * 2);
  }
  /* Not a single pair slower than by chance, yet under half the threshold: a fact, but no failure. */
  for (int i = 0; i < 60; i++) a[i] = 5, b[i] = 5.05 + 0.001 * i;
  assert_int_equal(pairs(a, b, 60, 0.05).verdict, HONE_GATE_SAME);
  /* All equal. */
  for (int i = 0; i < 60; i++) b[i] = 5;
  hone_gate_result r = pairs(a, b, 60, 0.05);
  assert_int_equal(r.verdict, HONE_GATE_SAME);
  assert_true(r.change == 0 && r.p_slower == 1 && r.noise == 0);
}

/* Pairs one by one give the same answer as all at once, at the same look. */
static void test_looks(void **unused) {
  (void)unused;
  double a[60], b[60];
  for (int round = 0; round < 20; round++) {
    fill(a, b, 60, round % 3 * 0.03, 0.04);
    hone_gate_result whole = pairs(a, b, 60, 0.05), step = {0};
    uint32_t n = 0;
    do {
      step = pairs(a, b, n, 0.05);
      assert_true(step.decided || step.look > n);
      if (!step.decided && n < 12) assert_int_equal(step.verdict, HONE_GATE_NONE);
      n = step.decided ? n : step.look;
    } while (!step.decided);
    assert_int_equal(step.verdict, whole.verdict);
    assert_int_equal(step.pairs, whole.pairs);
    assert_int_equal(n, whole.pairs);
  }
  /* Between two looks nothing is decided, however clear it is. */
  fill(a, b, 60, 1, 0.001);
  assert_false(pairs(a, b, 11, 0.05).decided);
  assert_int_equal(pairs(a, b, 11, 0.05).verdict, HONE_GATE_NONE);
  assert_int_equal(pairs(a, b, 13, 0.05).pairs, 12);
}

/* A million normal cases would say 0.25 %; 1500 are enough to see that the budget of 0.5 % is kept, and that
 * +5 % is caught. */
static void test_error_rates(void **unused) {
  (void)unused;
  double a[60], b[60];
  int flagged = 0, missed = 0;
  for (int i = 0; i < 1500; i++) {
    fill(a, b, 60, 0, 0.03);
    flagged += pairs(a, b, 60, 0.05).verdict == HONE_GATE_WORSE;
    fill(a, b, 60, 0.05, 0.03);
    missed += pairs(a, b, 60, 0.05).verdict != HONE_GATE_WORSE;
  }
  assert_in_range(flagged, 0, 14);
  assert_in_range(missed, 0, 45);
}

static void test_sets(void **unused) {
  (void)unused;
  double a[40], b[40];
  hone_gate_result r;
  hone_error e = {0};
  const struct {
    double change;
    uint32_t na, nb;
    hone_gate_verdict want;
  } cases[] = {{0.10, 20, 20, HONE_GATE_WORSE},
               {0, 20, 20, HONE_GATE_SAME},
               {-0.10, 12, 20, HONE_GATE_BETTER},
               {0.10, 9, 20, HONE_GATE_NONE},
               {0.10, 1, 5, HONE_GATE_NONE}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fill(a, b, 40, cases[i].change, 0.01);
    assert_int_equal(hone_gate_sets(a, cases[i].na, b, cases[i].nb, NULL, &r, &e), HONE_OK);
    if (r.verdict != cases[i].want)
      fail_msg("case %zu: %s, %s", i, hone_gate_verdict_name(r.verdict), r.reason);
    assert_false(r.paired);
    assert_true(r.decided && r.baseline_ms > 0 && r.candidate_ms > 0 && r.reason[0]);
  }
}

static void test_refusals(void **unused) {
  (void)unused;
  double good[12], bad[12];
  hone_gate_result r;
  hone_error e = {0};
  for (int i = 0; i < 12; i++) good[i] = bad[i] = 1;
  const double wrong[] = {0, -1, NAN, INFINITY};
  for (size_t i = 0; i < 4; i++) {
    bad[7] = wrong[i];
    assert_int_equal(hone_gate_pairs(good, bad, 12, NULL, &r, &e), HONE_ERROR_USAGE);
    assert_int_equal(hone_gate_pairs(bad, good, 12, NULL, &r, &e), HONE_ERROR_USAGE);
    assert_int_equal(hone_gate_sets(bad, 12, good, 12, NULL, &r, &e), HONE_ERROR_USAGE);
  }
  assert_int_equal(hone_gate_pairs(good, good, 12, &(hone_gate_options){.threshold = -1}, &r, &e),
                   HONE_ERROR_USAGE);
  assert_int_equal(hone_gate_pairs(good, good, 12, &(hone_gate_options){.max_pairs = 11}, &r, &e),
                   HONE_ERROR_USAGE);
  assert_int_equal(hone_gate_pairs(good, good, 12, &(hone_gate_options){.max_pairs = 501}, &r, &e),
                   HONE_ERROR_USAGE);
  assert_int_equal(hone_gate_sets(good, 12, good, 0, NULL, &r, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_gate_pairs(NULL, NULL, 0, NULL, &r, &e), HONE_OK);
  assert_int_equal(r.look, 12);
}

int main(void) {
  noise.state = 5;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_verdicts),
                                     cmocka_unit_test(test_looks), cmocka_unit_test(test_error_rates),
                                     cmocka_unit_test(test_sets),  cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
