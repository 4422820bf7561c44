/* Post-processing against the definitions, computed the simple way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hone/post.h>
#include <math.h>

static hone_tensor f32(float *v, int32_t rank, const int64_t *dims) {
  return (hone_tensor){hone_desc(HONE_DTYPE_F32, rank, dims), v};
}

static uint32_t seed = 1;

static float draw(void) { /* -8..8 */
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / 1048576.0f - 8;
}

static void fill(float *v, size_t n) {
  for (size_t i = 0; i < n; i++) v[i] = draw();
}

static void test_softmax(void **state) {
  (void)state;
  float v[2 * 5 * 3], got[2 * 5 * 3];
  fill(v, 30);
  const hone_tensor t = f32(v, 3, (int64_t[]){2, 5, 3});
  assert_int_equal(hone_post_softmax(&t, 1, got, NULL), HONE_OK);
  for (int n = 0; n < 2; n++)
    for (int k = 0; k < 3; k++) {
      double sum = 0;
      for (int c = 0; c < 5; c++) sum += exp((double)v[(n * 5 + c) * 3 + k]);
      for (int c = 0; c < 5; c++)
        assert_float_equal(got[(n * 5 + c) * 3 + k], exp((double)v[(n * 5 + c) * 3 + k]) / sum, 1e-6);
    }
  float big[2] = {1e30f, 1e30f}; /* exp(x) alone would be infinite */
  const hone_tensor two = f32(big, 2, (int64_t[]){1, 2});
  assert_int_equal(hone_post_softmax(&two, -1, big, NULL), HONE_OK);
  assert_float_equal(big[0], 0.5, 0);
  hone_error e = {0};
  assert_int_equal(hone_post_softmax(&t, 3, got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "axis 3"));
}

static void test_sigmoid(void **state) {
  (void)state;
  float v[] = {0, 2, -2, 1000, -1000}, got[5];
  const hone_tensor t = f32(v, 1, (int64_t[]){5});
  assert_int_equal(hone_post_sigmoid(&t, got, NULL), HONE_OK);
  assert_float_equal(got[0], 0.5, 0);
  assert_float_equal(got[1] + got[2], 1, 1e-6);
  assert_float_equal(got[1], 0.880797, 1e-6);
  assert_float_equal(got[3], 1, 0);
  assert_float_equal(got[4], 0, 0);
}

/* The best so far, again and again. */
static void test_top_k(void **state) {
  (void)state;
  enum { N = 300 };
  float v[N];
  hone_ranked got[N];
  uint32_t n;
  for (int round = 0; round < 40; round++) {
    const uint32_t k = (uint32_t)round * 8 % (N + 1);
    const float least = round % 3 ? -INFINITY : 2;
    bool taken[N] = {0};
    fill(v, N);
    for (int i = 0; i < N; i += 7) v[i] = v[(i + 21) % N]; /* equal ones */
    v[5] = NAN;
    assert_int_equal(hone_post_top_k(v, N, k, least, got, &n, NULL), HONE_OK);
    assert_true(n <= k);
    for (uint32_t r = 0; r <= n && r < k; r++) {
      int best = -1;
      for (int i = 0; i < N; i++)
        if (!taken[i] && v[i] >= least && (best < 0 || v[i] > v[best])) best = i;
      if (r == n) {
        assert_int_equal(best, -1);
        break;
      }
      taken[best] = true;
      assert_int_equal(got[r].index, best);
      assert_float_equal(got[r].score, v[best], 0);
    }
  }
  assert_int_equal(hone_post_top_k(NULL, 0, 3, 0, got, &n, NULL), HONE_OK);
  assert_int_equal(n, 0);
}

static void test_argmax(void **state) {
  (void)state;
  float v[3 * 4 * 6], score[18];
  int64_t got[18];
  fill(v, 72);
  v[0] = NAN;
  const hone_tensor t = f32(v, 3, (int64_t[]){3, 4, 6});
  assert_int_equal(hone_post_argmax(&t, -2, got, score, NULL), HONE_OK);
  for (int n = 0; n < 3; n++)
    for (int k = 0; k < 6; k++)
      for (int c = 0; c < 4; c++) {
        const float other = v[(n * 4 + c) * 6 + k];
        if (!isnan(other)) assert_true(score[n * 6 + k] >= other);
        assert_float_equal(score[n * 6 + k], v[(n * 4 + got[n * 6 + k]) * 6 + k], 0);
      }
  int8_t bytes[] = {-3, 7, 7};
  const hone_tensor whole = {hone_desc(HONE_DTYPE_I8, 1, (int64_t[]){3}), bytes};
  assert_int_equal(hone_post_argmax(&whole, 0, got, NULL, NULL), HONE_OK);
  assert_int_equal(got[0], 1);
  const hone_tensor none = f32(v, 2, (int64_t[]){2, 0});
  assert_int_equal(hone_post_argmax(&none, 1, got, NULL, NULL), HONE_ERROR_INPUT);
}

/* One time a letter: the class, and its probability among five. */
static void spell(float *v, const char *classes, const float *p) {
  for (size_t t = 0; classes[t]; t++)
    for (int c = 0; c < 5; c++) v[t * 5 + (size_t)c] = c == classes[t] - '0' ? p[t] : (1 - p[t]) / 4;
}

static void test_ctc(void **state) {
  (void)state;
  static const char *const labels[] = {"a", "b", "\xe4\xb8\xad", " "}; /* of classes 1 to 4 */
  static const float p[] = {0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.9f, 0.8f, 0.7f};
  float v[2 * 8 * 5] = {0}, turned[2 * 8 * 5];
  spell(v, "01100011", p);      /* a, blank, a */
  spell(v + 40, "12240332", p); /* a b space, then a blank, two of the third, b */
  const hone_tensor t = f32(v, 3, (int64_t[]){2, 8, 5});
  hone_ctc_options o = {.labels = labels, .n_labels = 4};
  hone_ctc got;
  assert_int_equal(hone_post_ctc(&t, 0, &o, &got, NULL), HONE_OK);
  assert_string_equal(got.text, "aa");
  assert_int_equal(got.n, 2);
  assert_int_equal(got.steps[0], 1);
  assert_int_equal(got.steps[1], 6);
  assert_float_equal(got.score, (0.8 + 0.8) / 2, 1e-6);
  hone_ctc_free(&got);
  assert_int_equal(hone_post_ctc(&t, 1, &o, &got, NULL), HONE_OK);
  assert_string_equal(got.text, "ab \xe4\xb8\xad"
                                "b");
  assert_float_equal(got.score, (0.9 + 0.8 + 0.6 + 0.9 + 0.7) / 5, 1e-6);
  hone_ctc_free(&got);
  /* the same with times first, and as logits: log p + 3 */
  for (int n = 0; n < 2; n++)
    for (int at = 0; at < 40; at++) turned[(at / 5 * 2 + n) * 5 + at % 5] = logf(v[n * 40 + at]) + 3;
  const hone_tensor by_time = f32(turned, 3, (int64_t[]){8, 2, 5});
  o.time_major = o.logits = true;
  assert_int_equal(hone_post_ctc(&by_time, 1, &o, &got, NULL), HONE_OK);
  assert_int_equal(got.n, 5);
  assert_float_equal(got.score, (0.9 + 0.8 + 0.6 + 0.9 + 0.7) / 5, 1e-6);
  hone_ctc_free(&got);
  /* another blank: class 4 has no label of its own, class 0 has the first */
  o = (hone_ctc_options){.blank = 4, .labels = labels, .n_labels = 4};
  assert_int_equal(hone_post_ctc(&t, 0, &o, &got, NULL), HONE_OK);
  assert_string_equal(got.text, "abab");
  hone_ctc_free(&got);
  /* nothing but blanks */
  spell(v, "00000000", p);
  o.blank = 0;
  assert_int_equal(hone_post_ctc(&t, 0, &o, &got, NULL), HONE_OK);
  assert_string_equal(got.text, "");
  assert_float_equal(got.score, 0, 0);
  hone_ctc_free(&got);
  /* too few labels, no such blank, no such sample */
  hone_error e = {0};
  o.n_labels = 2;
  assert_int_equal(hone_post_ctc(&t, 1, &o, &got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "label"));
  assert_null(got.text);
  o.blank = 5;
  assert_int_equal(hone_post_ctc(&t, 0, &o, &got, &e), HONE_ERROR_INPUT);
  o.blank = 0;
  assert_int_equal(hone_post_ctc(&t, 2, &o, &got, &e), HONE_ERROR_USAGE);
}

static double common(const hone_detection *a, const hone_detection *b) {
  const double w = fmin(a->x1, b->x1) - fmax(a->x0, b->x0), h = fmin(a->y1, b->y1) - fmax(a->y0, b->y0);
  const double both = w > 0 && h > 0 ? w * h : 0;
  return both / ((a->x1 - a->x0) * (a->y1 - a->y0) + (b->x1 - b->x0) * (b->y1 - b->y0) - both);
}

/* YOLOv8's grid: no two boxes that are left overlap by more, and each that is gone overlaps a better one that
 * is left. */
static void test_yolo(void **state) {
  (void)state;
  enum { M = 60, C = 2 };
  float v[(4 + C) * M];
  for (int i = 0; i < M; i++) {
    v[i] = (draw() + 8) * 4;
    v[M + i] = (draw() + 8) * 4;
    v[2 * M + i] = draw() + 16;
    v[3 * M + i] = draw() + 16;
    for (int c = 0; c < C; c++) v[(4 + c) * M + i] = (draw() + 8) / 16;
  }
  const hone_tensor t = f32(v, 3, (int64_t[]){1, 4 + C, M});
  const hone_tensor *out[] = {&t};
  const char *names[] = {"output0"};
  const hone_boxes_options o = {.form = HONE_BOXES_YOLOV8, .min_score = 0.3, .nms_iou = 0.4};
  const hone_picture_map map = {200, 200, 100, 100, 0, 0, 2, 2};
  hone_boxes got;
  assert_int_equal(hone_post_boxes(out, names, 1, 1, 0, 0, &map, &o, &got, NULL), HONE_OK);
  uint32_t found = 0, candidates = 0;
  for (int c = 0; c < C; c++)
    for (int i = 0; i < M; i++) {
      const double score = (double)v[(4 + c) * M + i];
      if (score < 0.3) continue;
      candidates++;
      const double x = v[i] * 2.0, y = v[M + i] * 2.0, w = v[2 * M + i] * 2.0, h = v[3 * M + i] * 2.0;
      const hone_detection d = {
          fmax(x - w / 2, 0), fmax(y - h / 2, 0), fmin(x + w / 2, 200), fmin(y + h / 2, 200), score,
          (uint32_t)c};
      bool left = false, beaten = false;
      for (uint32_t k = 0; k < got.n; k++) {
        const hone_detection *g = &got.box[k];
        if (g->cls != (uint32_t)c) continue;
        left |= fabs(g->score - score) < 1e-9 && fabs(g->x0 - d.x0) < 1e-9 && fabs(g->y1 - d.y1) < 1e-9;
        beaten |= g->score > score && common(g, &d) > 0.4;
      }
      assert_true(left != beaten);
      found += left;
    }
  assert_int_equal(found, got.n);
  assert_true(got.n > 4 && got.n + 10 < candidates);
  uint32_t n = got.n; /* and once more changes nothing */
  assert_int_equal(hone_post_suppress(got.box, &n, 0.4, NULL), HONE_OK);
  assert_int_equal(n, got.n);
  hone_boxes_free(&got);
  hone_error e = {0};
  assert_int_equal(hone_post_boxes(out, names, 1, 1, 0, 0, NULL, NULL, &got, &e), HONE_ERROR_INPUT);
  assert_null(got.box);
}

/* The background's column is none of the classes. */
static void test_background(void **state) {
  (void)state;
  float boxes[] = {0.1f, 0.1f, 0.2f, 0.2f, 0.5f, 0.5f, 0.9f, 0.9f}, scores[] = {0.9f, 0.1f, 0.2f, 0.8f};
  const hone_tensor b = f32(boxes, 3, (int64_t[]){1, 2, 4}), s = f32(scores, 3, (int64_t[]){1, 2, 2});
  const hone_tensor *out[] = {&s, &b};
  const char *names[] = {"scores", "boxes"};
  const hone_boxes_options o = {
      .form = HONE_BOXES_SCORES, .relative = true, .min_score = 0.5, .background = true};
  const hone_picture_map map = {100, 100, 10, 10, 0, 0, 10, 10};
  hone_boxes got;
  assert_int_equal(hone_post_boxes(out, names, 2, 1, 0, 0, &map, &o, &got, NULL), HONE_OK);
  assert_int_equal(got.n, 1);
  assert_int_equal(got.box[0].cls, 0);
  assert_float_equal(got.box[0].x1, 90, 1e-4);
  hone_boxes_free(&got);
}

static void test_refused(void **state) {
  (void)state;
  hone_string word = {"a", 1};
  const hone_tensor text = {hone_desc(HONE_DTYPE_STRING, 1, (int64_t[]){1}), &word};
  float v[1];
  hone_error e = {0};
  assert_int_equal(hone_post_sigmoid(&text, v, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.got, "string"));
  const hone_tensor nowhere = f32(NULL, 1, (int64_t[]){1});
  assert_int_equal(hone_post_sigmoid(&nowhere, v, &e), HONE_ERROR_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax),    cmocka_unit_test(test_sigmoid),
                                     cmocka_unit_test(test_top_k),      cmocka_unit_test(test_argmax),
                                     cmocka_unit_test(test_ctc),        cmocka_unit_test(test_yolo),
                                     cmocka_unit_test(test_background), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
