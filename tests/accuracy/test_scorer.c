/* Scores that are known by hand: Top-1, Top-5, F1, Wilson's interval, McNemar's test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

static hone_scorer *opened(uint32_t classes, uint64_t samples) {
  hone_scorer *s = NULL;
  hone_error e = {0};
  assert_int_equal(hone_scorer_open(HONE_TRUTH_CLASS, classes, samples, &s, &e), HONE_OK);
  return s;
}

static hone_eval_result finished(hone_scorer *s) {
  hone_eval_result r;
  hone_error e = {0};
  assert_int_equal(hone_scorer_finish(s, &r, &e), HONE_OK);
  hone_scorer_close(s);
  return r;
}

/* truth 0 0 0 0 1 1 2, chosen 0 0 1 2 1 1 0: f1 of 0: 2*2/(4+3), of 1: 2*2/(2+3), of 2: 0. */
static void test_f1(void **state) {
  (void)state;
  static const uint32_t truth[] = {0, 0, 0, 0, 1, 1, 2}, chosen[] = {0, 0, 1, 2, 1, 1, 0};
  hone_scorer *s = opened(4, 9);
  hone_error e = {0};
  for (uint32_t i = 0; i < 7; i++) {
    float scores[4] = {0.1f, 0.1f, 0.1f, 0.1f};
    scores[chosen[i]] = 0.9f;
    assert_int_equal(hone_scorer_add_class(s, i + 2, truth[i], scores, 4, &e), HONE_OK);
  }
  hone_eval_result r = finished(s);
  assert_int_equal(r.samples, 7);
  assert_int_equal(r.right, 4);
  assert_float_equal(r.top1, 4.0 / 7, 1e-12);
  assert_true(isnan(r.top5));                                         /* of four classes it says nothing */
  assert_float_equal(r.f1_macro, (4.0 / 7 + 4.0 / 5 + 0) / 3, 1e-12); /* class 3 is not in the data */
  assert_float_equal(r.f1_micro, 4.0 / 7, 1e-12);
  assert_float_equal(r.classes[0].precision, 2.0 / 3, 1e-12);
  assert_float_equal(r.classes[0].recall, 0.5, 1e-12);
  assert_int_equal(r.classes[0].mistakes, 1);
  assert_int_equal(r.classes[0].taken_for, 1);
  assert_int_equal(r.classes[2].taken_for, 0);
  assert_int_equal(r.classes[1].mistakes, 0);
  assert_true(isnan(r.classes[3].recall));
  assert_int_equal(r.n_outcomes, 9);
  assert_int_equal(r.outcomes[0], HONE_OUTCOME_NONE);
  assert_int_equal(r.outcomes[2], HONE_OUTCOME_RIGHT);
  assert_int_equal(r.outcomes[4], HONE_OUTCOME_WRONG);
  hone_eval_free(&r);
}

static void test_top5(void **state) {
  (void)state;
  hone_scorer *s = opened(8, 4);
  hone_error e = {0};
  const float falling[8] = {8, 7, 6, 5, 4, 3, 2, 1}, equal[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  float holes[8] = {NAN, NAN, 1, NAN, NAN, NAN, NAN, NAN};
  assert_int_equal(hone_scorer_add_class(s, 0, 4, falling, 8, &e), HONE_OK); /* fifth: counts */
  assert_int_equal(hone_scorer_add_class(s, 1, 5, falling, 8, &e), HONE_OK); /* sixth: does not */
  assert_int_equal(hone_scorer_add_class(s, 2, 0, equal, 8, &e), HONE_OK);   /* the first of equals wins */
  assert_int_equal(hone_scorer_add_class(s, 3, 2, holes, 8, &e), HONE_OK);   /* NaN is less than all */
  hone_eval_result r = finished(s);
  assert_int_equal(r.right, 2);
  assert_int_equal(r.right5, 3);
  assert_float_equal(r.top5, 0.75, 0);
  hone_eval_free(&r);
  /* nothing but NaN: no choice, and never right */
  s = opened(8, 1);
  holes[2] = NAN;
  assert_int_equal(hone_scorer_add_class(s, 0, 0, holes, 8, &e), HONE_OK);
  r = finished(s);
  assert_int_equal(r.right + r.right5, 0);
  hone_eval_free(&r);
}

static void test_refusals(void **state) {
  (void)state;
  hone_scorer *s = opened(3, 2);
  hone_error e = {0};
  const float scores[3] = {1, 2, 3};
  assert_int_equal(hone_scorer_add_class(s, 2, 0, scores, 3, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_scorer_add_class(s, 0, 3, scores, 3, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_scorer_add_class(s, 0, 0, scores, 2, &e), HONE_ERROR_USAGE);
  hone_scorer_close(s);
  assert_int_equal(hone_scorer_open(HONE_TRUTH_NONE, 3, 2, &s, &e), HONE_ERROR_USAGE);
  assert_null(s);
}

/* Wilson's interval of 8 of 10: 0.4902 to 0.9433; the ends are exact where all or none are right. */
static void test_interval(void **state) {
  (void)state;
  double low, high;
  hone_interval(8, 10, &low, &high);
  assert_float_equal(low, 0.4901625, 1e-6);
  assert_float_equal(high, 0.9433178, 1e-6);
  hone_interval(0, 10, &low, &high);
  assert_float_equal(low, 0, 0);
  assert_float_equal(high, 0.2775328, 1e-6);
  hone_interval(10, 10, &low, &high);
  assert_float_equal(low, 1 - 0.2775328, 1e-6);
  assert_float_equal(high, 1, 0);
  hone_interval(0, 0, &low, &high);
  assert_float_equal(low, 0, 0);
  assert_float_equal(high, 1, 0);
}

/* Results in which the first has right what `a` has ones for. */
static hone_eval_change compared(const char *a, const char *b) {
  uint8_t x[64], y[64];
  const size_t n = strlen(a);
  for (size_t i = 0; i < n; i++) {
    x[i] = a[i] == '-' ? HONE_OUTCOME_NONE : a[i] == '1' ? HONE_OUTCOME_RIGHT : HONE_OUTCOME_WRONG;
    y[i] = b[i] == '-' ? HONE_OUTCOME_NONE : b[i] == '1' ? HONE_OUTCOME_RIGHT : HONE_OUTCOME_WRONG;
  }
  const hone_eval_result p = {.truth = HONE_TRUTH_CLASS, .n_outcomes = n, .outcomes = x},
                         q = {.truth = HONE_TRUTH_CLASS, .n_outcomes = n, .outcomes = y};
  hone_eval_change c;
  hone_error e = {0};
  assert_int_equal(hone_eval_compare(&p, &q, &c, &e), HONE_OK);
  return c;
}

static void test_change(void **state) {
  (void)state;
  /* 1 against 9 of ten: p = 2 (1 + 10) / 1024; a sample that one did not see is none of the matter */
  hone_eval_change c = compared("1111-111110001", "0000100000001-");
  assert_int_equal(c.samples, 12);
  assert_int_equal(c.only_a, 9);
  assert_int_equal(c.only_b, 1);
  assert_float_equal(c.top1_a, 9.0 / 12, 1e-12);
  assert_float_equal(c.top1_b, 1.0 / 12, 1e-12);
  assert_float_equal(c.p, 22.0 / 1024, 1e-9);
  assert_true(c.real);
  c = compared("110011", "001111"); /* 2 against 2 */
  assert_float_equal(c.p, 1, 1e-12);
  assert_false(c.real);
  c = compared("1010", "1010"); /* no difference at all */
  assert_float_equal(c.p, 1, 1e-12);
  assert_false(c.real);
  c = compared("11111", "00000"); /* 5 against 0: 2/32 */
  assert_float_equal(c.p, 0.0625, 1e-12);
  assert_false(c.real);
  hone_eval_result other = {.truth = HONE_TRUTH_CLASS, .n_outcomes = 3}, one = {.truth = HONE_TRUTH_CLASS};
  hone_error e = {0};
  assert_int_equal(hone_eval_compare(&one, &other, &c, &e), HONE_ERROR_USAGE);
}

/* ---- boxes */

static hone_scorer *opened_boxes(uint32_t classes) {
  hone_scorer *s = NULL;
  hone_error e = {0};
  assert_int_equal(hone_scorer_open(HONE_TRUTH_BOXES, classes, 10, &s, &e), HONE_OK);
  return s;
}

#define ADD(s, sample, truth, found)                                                                         \
  assert_int_equal(hone_scorer_add_boxes(s, sample, truth, sizeof(truth) / sizeof *(truth), found,           \
                                         sizeof(found) / sizeof *(found), &e),                               \
                   HONE_OK)

/* Right at 0.9, wrong at 0.8, right at 0.7: precision 1, then 2/3 up to recall 1. */
static void test_average_precision(void **state) {
  (void)state;
  hone_error e = {0};
  const hone_box truth[] = {{0, 0, 10, 10, 1, false}, {20, 20, 30, 30, 1, false}};
  const hone_detection found[] = {{20, 20, 30, 30, 0.7, 1},
                                  {50, 50, 60, 60, 0.8, 1},
                                  {0, 0, 10, 10, 0.9, 1},
                                  {0, 0, 10, 10, 0.99, 7}}; /* a class that is not the scorer's */
  hone_scorer *s = opened_boxes(3);
  ADD(s, 0, truth, found);
  hone_eval_result r = finished(s);
  assert_int_equal(r.truths, 2);
  assert_int_equal(r.detections, 3);
  assert_float_equal(r.map50, (51 + 50 * 2.0 / 3) / 101, 1e-12);
  assert_float_equal(r.map, r.map50, 1e-12); /* the overlaps are whole */
  assert_float_equal(r.map75, r.map50, 1e-12);
  assert_float_equal(r.map50_voc, 0.5 + 0.5 * 2 / 3, 1e-12);
  assert_float_equal(r.f1_micro, 0.8, 1e-12); /* all three: 2 * 2 / (2 + 3) */
  assert_float_equal(r.confidence, 0.7, 0);
  assert_float_equal(r.classes[1].precision, 2.0 / 3, 1e-12);
  assert_true(isnan(r.classes[0].ap)); /* not in the data, and not in the mean */
  hone_eval_free(&r);
}

/* An overlap of 0.72 is enough for 0.50 to 0.70, five of ten. */
static void test_thresholds(void **state) {
  (void)state;
  hone_error e = {0};
  const hone_box truth[] = {{0, 0, 10, 10, 0, false}};
  const hone_detection found[] = {{0, 0, 10, 7.2, 0.9, 0}};
  hone_scorer *s = opened_boxes(1);
  ADD(s, 0, truth, found);
  hone_eval_result r = finished(s);
  assert_float_equal(r.map50, 1, 1e-12);
  assert_float_equal(r.map75, 0, 1e-12);
  assert_float_equal(r.map, 0.5, 1e-12);
  hone_eval_free(&r);
}

static void test_claims(void **state) {
  (void)state;
  hone_error e = {0};
  const hone_box truth[] = {{0, 0, 10, 10, 0, false}, {100, 0, 200, 100, 0, true}};
  /* twice the same: the poorer one is wrong; two inside of a crowd are neither right nor wrong */
  const hone_detection found[] = {{0, 0, 10, 10, 0.9, 0},
                                  {0, 0, 10, 9, 0.95, 0},
                                  {110, 10, 120, 20, 0.99, 0},
                                  {130, 10, 140, 20, 0.98, 0}};
  hone_scorer *s = opened_boxes(1);
  ADD(s, 0, truth, found);
  hone_eval_result r = finished(s);
  assert_int_equal(r.truths, 1);
  assert_float_equal(r.map50, 1, 1e-12);
  assert_float_equal(r.map50_voc, 1, 1e-12);
  assert_float_equal(r.f1_micro, 1, 1e-12); /* at 0.95, where the second is not there yet */
  assert_float_equal(r.confidence, 0.95, 0);
  hone_eval_free(&r);
  /* nothing found, and boxes that are not there */
  s = opened_boxes(2);
  const hone_box missed[] = {{0, 0, 10, 10, 0, false}};
  const hone_detection wrong[] = {{0, 0, 10, 10, 0.5, 1}};
  ADD(s, 0, missed, wrong);
  r = finished(s);
  assert_float_equal(r.map, 0, 0); /* of class 0 alone */
  assert_float_equal(r.f1_micro, 0, 0);
  hone_eval_free(&r);
  s = opened_boxes(1);
  const hone_box strange[] = {{0, 0, 1, 1, 1, false}};
  assert_int_equal(hone_scorer_add_boxes(s, 0, strange, 1, NULL, 0, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_scorer_add_boxes(s, 10, NULL, 0, NULL, 0, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_scorer_add_boxes(s, 0, NULL, 0, NULL, 0, &e), HONE_OK);
  hone_scorer_close(s);
}

/* Of a class and a picture, the best hundred. */
static void test_hundred(void **state) {
  (void)state;
  hone_error e = {0};
  const hone_box truth[] = {{0, 0, 10, 10, 0, false}};
  hone_detection found[101];
  for (int i = 0; i < 101; i++) found[i] = (hone_detection){50, 50, 60, 60, 1 - i / 200.0, 0};
  found[100] = (hone_detection){0, 0, 10, 10, 0.1, 0};
  hone_scorer *s = opened_boxes(1);
  ADD(s, 0, truth, found);
  hone_eval_result r = finished(s);
  assert_int_equal(r.detections, 100);
  assert_float_equal(r.map50, 0, 0);
  hone_eval_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_f1),         cmocka_unit_test(test_top5),
      cmocka_unit_test(test_refusals),   cmocka_unit_test(test_interval),
      cmocka_unit_test(test_change),     cmocka_unit_test(test_average_precision),
      cmocka_unit_test(test_thresholds), cmocka_unit_test(test_claims),
      cmocka_unit_test(test_hundred),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
