/* Boxes: what outputs say, sets that have them, and mAP of a network whose answers are known. */
#include "accuracy/pictures.h"
#include "cli/process.h"
#include "runtime/post/decode.h"
#include "net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

/* ---- decoding */

/* A picture of 100x50 in a tensor of 200x100, from x = 0 and y = 0 on. */
static const hone_picture_map half = {100, 50, 200, 100, 0, 0, 0.5, 0.5};

static hone_tensor f32(float *v, int32_t rank, const int64_t *dims) {
  return (hone_tensor){hone_desc(HONE_DTYPE_F32, rank, dims), v};
}

static void decoded(hone_boxes_options o, const hone_tensor *t, const char *const *names, uint32_t n,
                    int64_t rows, int64_t row, hn_detections *list, hone_box_form expected) {
  const hone_tensor *out[4];
  hn_decoder d;
  hone_error e = {0};
  for (uint32_t i = 0; i < n; i++) out[i] = &t[i];
  if (hn_decode_find(&o, out, names, n, rows, 3, &d, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(d.o.form, expected);
  assert_int_equal(hn_decode_row(&d, out, row, &half, list, &e), HONE_OK);
}

static void expect(const hone_detection *d, double x0, double y0, double x1, double y1, double score,
                   uint32_t cls) {
  assert_float_equal(d->x0, x0, 1e-5);
  assert_float_equal(d->y0, y0, 1e-5);
  assert_float_equal(d->x1, x1, 1e-5);
  assert_float_equal(d->y1, y1, 1e-5);
  assert_float_equal(d->score, score, 1e-6);
  assert_int_equal(d->cls, cls);
}

static void test_rows(void **state) {
  (void)state;
  static const char *const names[] = {"boxes"};
  hn_detections list = {0};
  float v[] = {10, 20, 30,  40, 0.9f, 2, 0, 0, 1, 1, 0.0001f, 0, /* too poor */
               50, 50, 500, 90, 0.5f, 0, 0, 0, 9, 9, 0.9f,    3 /* a class that the data does not have */};
  hone_tensor t = f32(v, 3, (int64_t[]){2, 2, 6});
  decoded((hone_boxes_options){0}, &t, names, 1, 2, 0, &list, HONE_BOXES_ROWS);
  assert_int_equal(list.len, 1);
  expect(list.ptr, 5, 10, 15, 20, 0.9, 2);
  decoded((hone_boxes_options){0}, &t, names, 1, 2, 1, &list, HONE_BOXES_ROWS);
  assert_int_equal(list.len, 1);
  expect(list.ptr, 25, 25, 100, 45, 0.5, 0); /* cut at the picture's edge */
  decoded((hone_boxes_options){.order = HONE_BOX_YXYX}, &t, names, 1, 2, 0, &list, HONE_BOXES_ROWS);
  expect(list.ptr, 10, 5, 20, 15, 0.9, 2);
  decoded((hone_boxes_options){.order = HONE_BOX_CENTRE}, &t, names, 1, 2, 0, &list, HONE_BOXES_ROWS);
  expect(list.ptr, 0, 0, 12.5, 20, 0.9, 2); /* centre 10,20 of 30x40: -5..25 and 0..40, halved and cut */
  float part[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.9f, 1};
  t = f32(part, 2, (int64_t[]){1, 6});
  decoded((hone_boxes_options){.relative = true}, &t, names, 1, 1, 0, &list, HONE_BOXES_ROWS);
  expect(list.ptr, 10, 10, 30, 20, 0.9, 1);
  /* with the sample's number before, and the class before the score */
  float seven[] = {1, 10, 20, 30, 40, 2, 0.9f, 0, 10, 20, 30, 60, 1, 0.8f};
  t = f32(seven, 2, (int64_t[]){2, 7});
  decoded((hone_boxes_options){0}, &t, names, 1, 2, 0, &list, HONE_BOXES_ROWS);
  assert_int_equal(list.len, 1);
  expect(list.ptr, 5, 10, 15, 30, 0.8, 1);
  hn_vec_free(&list);
}

static void test_lists(void **state) {
  (void)state;
  hn_detections list = {0};
  float boxes[] = {10, 20, 30, 40, 50, 20, 60, 40}, scores[] = {0.9f, 0.8f}, count[] = {1};
  int64_t labels[] = {1, 2};
  static const char *const names[] = {"labels", "scores", "boxes", "num_detections"};
  const hone_tensor t[] = {{hone_desc(HONE_DTYPE_I64, 1, (int64_t[]){2}), labels},
                           f32(scores, 1, (int64_t[]){2}),
                           f32(boxes, 2, (int64_t[]){2, 4}),
                           f32(count, 1, (int64_t[]){1})};
  decoded((hone_boxes_options){0}, t, names, 3, 1, 0, &list, HONE_BOXES_LISTS);
  assert_int_equal(list.len, 2);
  expect(&list.ptr[1], 25, 10, 30, 20, 0.8, 2);
  decoded((hone_boxes_options){0}, t, names, 4, 1, 0, &list, HONE_BOXES_LISTS);
  assert_int_equal(list.len, 1);
  expect(&list.ptr[0], 5, 10, 15, 20, 0.9, 1);
  hn_vec_free(&list);
}

static void test_nms(void **state) {
  (void)state;
  static const char *const names[] = {"boxes", "scores", "selected"};
  hn_detections list = {0};
  float boxes[] = {10, 20, 30, 40, 50, 20, 60, 40, 0, 0, 8, 8},
        scores[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  int64_t picked[] = {0, 1, 0, 0, 0, 2, 0, 5, 0, 0, 0, 9, 1, 0, 0}; /* also such as are not there */
  const hone_tensor t[] = {f32(boxes, 3, (int64_t[]){1, 3, 4}),
                           f32(scores, 3, (int64_t[]){1, 2, 3}),
                           {hone_desc(HONE_DTYPE_I64, 2, (int64_t[]){5, 3}), picked}};
  decoded((hone_boxes_options){0}, t, names, 3, 1, 0, &list, HONE_BOXES_NMS);
  assert_int_equal(list.len, 2);
  expect(&list.ptr[0], 5, 10, 15, 20, 0.4, 1);
  expect(&list.ptr[1], 0, 0, 4, 4, 0.3, 0);
  hn_vec_free(&list);
}

/* The same three boxes of three classes as YOLO v3 and v8 write them: two of a class lie upon each other. */
static void test_grids(void **state) {
  (void)state;
  static const char *const names[] = {"output"};
  hn_detections list = {0};
  const float rows[3][7] = {
      {20, 30, 20, 20, 0, 0.9f, 0}, {21, 30, 20, 20, 0, 0.8f, 0}, {100, 60, 20, 20, 0.5f, 0, 0.7f}};
  float v8[7 * 3], v3[3 * 8];
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 7; k++) {
      v8[k * 3 + i] = rows[i][k];
      v3[i * 8 + (k < 4 ? k : k + 1)] = rows[i][k];
    }
  for (int i = 0; i < 3; i++) v3[i * 8 + 4] = 0.5f;
  const hone_tensor t8 = f32(v8, 3, (int64_t[]){1, 7, 3}), t3 = f32(v3, 3, (int64_t[]){1, 3, 8});
  decoded((hone_boxes_options){.form = HONE_BOXES_YOLOV8}, &t8, names, 1, 1, 0, &list, HONE_BOXES_YOLOV8);
  assert_int_equal(list.len, 3);
  expect(&list.ptr[0], 45, 25, 55, 35, 0.5, 0); /* by class */
  expect(&list.ptr[1], 5, 10, 15, 20, 0.9, 1);
  expect(&list.ptr[2], 45, 25, 55, 35, 0.7, 2);
  decoded((hone_boxes_options){.form = HONE_BOXES_YOLOV3, .min_score = 0.3}, &t3, names, 1, 1, 0, &list,
          HONE_BOXES_YOLOV3);
  assert_int_equal(list.len, 2); /* 0.25 is below */
  expect(&list.ptr[0], 5, 10, 15, 20, 0.45, 1);
  decoded((hone_boxes_options){.form = HONE_BOXES_YOLOV8, .nms_iou = 0.95}, &t8, names, 1, 1, 0, &list,
          HONE_BOXES_YOLOV8);
  assert_int_equal(list.len, 4); /* 19 of 21 is less */
  /* boxes beside scores, the background first */
  static const char *const two[] = {"boxes", "scores"};
  float boxes[] = {10, 20, 30, 40}, scores[] = {0.9f, 0.1f, 0.0f, 0.6f};
  const hone_tensor t[] = {f32(boxes, 3, (int64_t[]){1, 1, 4}), f32(scores, 3, (int64_t[]){1, 1, 4})};
  decoded((hone_boxes_options){.form = HONE_BOXES_SCORES}, t, two, 2, 1, 0, &list, HONE_BOXES_SCORES);
  assert_int_equal(list.len, 2);
  expect(&list.ptr[0], 5, 10, 15, 20, 0.1, 0);
  expect(&list.ptr[1], 5, 10, 15, 20, 0.6, 2);
  hn_vec_free(&list);
}

static void test_other_outputs(void **state) {
  (void)state;
  static const char *const names[] = {"y"};
  float v[10] = {0};
  const hone_tensor t = f32(v, 2, (int64_t[]){1, 10}), *out = &t;
  hn_decoder d;
  hone_error e = {0};
  for (int form = 0; form < HONE_BOX_FORMS; form++) {
    const hone_boxes_options o = {.form = (hone_box_form)form};
    assert_int_equal(hn_decode_find(&o, &out, names, 1, 1, 3, &d, &e), HONE_ERROR_INPUT);
    assert_non_null(strstr(e.hint, "--boxes"));
  }
}

/* ---- sets */

static hone_dataset *opened(const char *name, const char *labels) {
  hone_dataset *set = NULL;
  hone_error e = {0};
  char own[2][600];
  snprintf(own[0], 600, "%s", pictures_path(name));
  if (labels) snprintf(own[1], 600, "%s", pictures_path(labels));
  const char *path = own[0];
  const hone_dataset_options o = {.paths = &path, .n_paths = 1, .labels = labels ? own[1] : NULL};
  if (hone_dataset_open(&o, &set, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return set;
}

static void check_yolo(const char *name) {
  hone_dataset *set = opened(name, NULL);
  hone_sample s;
  assert_string_equal(hone_dataset_kind(set), "YOLO boxes");
  assert_int_equal(hone_dataset_samples(set), 2);
  assert_int_equal(hone_dataset_classes(set), 3);
  assert_true(hone_dataset_sample(set, 0, &s));
  assert_int_equal(s.n_boxes, 2);
  assert_true(s.relative);
  assert_float_equal(s.boxes[0].x0, 0.25, 1e-12);
  assert_float_equal(s.boxes[0].x1, 0.75, 1e-12);
  assert_float_equal(s.boxes[0].y0, 0.1, 1e-12);
  assert_int_equal(s.boxes[0].cls, 2);
  assert_true(hone_dataset_sample(set, 1, &s)); /* no text: no boxes */
  assert_int_equal(s.n_boxes, 0);
  assert_non_null(strstr(hone_dataset_problem(set, 0), "a.txt:3"));
  assert_null(hone_dataset_problem(set, 1));
  hone_dataset_close(set);
}

static void test_yolo(void **state) {
  (void)state;
  static const char text[] = "2 0.5 0.2 0.5 0.2\n0 0.5 0.5 1 1\nnot this one\n";
  pictures_plain("beside/a.png", 8, 8, 1, 2, 3);
  pictures_plain("beside/b.png", 8, 8, 1, 2, 3);
  pictures_text("beside/a.txt", text);
  check_yolo("beside");
  pictures_plain("apart/images/a.png", 8, 8, 1, 2, 3);
  pictures_plain("apart/images/b.png", 8, 8, 1, 2, 3);
  pictures_text("apart/labels/a.txt", text);
  check_yolo("apart");
  check_yolo("apart/images");
}

static void test_coco(void **state) {
  (void)state;
  pictures_plain("coco/a.png", 8, 8, 1, 2, 3);
  pictures_plain("coco/b.png", 8, 8, 1, 2, 3);
  pictures_text("coco.json",
                "{\"images\": [{\"id\": 9, \"file_name\": \"b.png\"}, {\"id\": 3, \"file_name\": \"a.png\"}],"
                "\"categories\": [{\"id\": 18, \"name\": \"dog\"}, {\"id\": 1, \"name\": \"person\"}],"
                "\"annotations\": [{\"image_id\": 3, \"category_id\": 18, \"bbox\": [1, 2, 3, 4]},"
                "{\"image_id\": 9, \"category_id\": 1, \"bbox\": [0, 0, 1, 1], \"iscrowd\": 1},"
                "{\"image_id\": 3, \"category_id\": 1, \"bbox\": [0, 0, 2.5, 1], \"iscrowd\": 0},"
                "{\"image_id\": 4, \"category_id\": 1, \"bbox\": [0, 0, 1, 1]}]}");
  hone_dataset *set = opened("coco", "coco.json");
  hone_sample s;
  assert_string_equal(hone_dataset_kind(set), "COCO boxes");
  assert_int_equal(hone_dataset_samples(set), 2);
  assert_string_equal(hone_dataset_class(set, 0), "person"); /* by their ids */
  assert_string_equal(hone_dataset_class(set, 1), "dog");
  assert_true(hone_dataset_sample(set, 0, &s));
  assert_int_equal(s.n_boxes, 1);
  assert_true(s.boxes[0].crowd);
  assert_true(hone_dataset_sample(set, 1, &s));
  assert_int_equal(s.n_boxes, 2);
  double wide = 0;
  for (int i = 0; i < 2; i++)
    if (s.boxes[i].cls == 1) {
      assert_float_equal(s.boxes[i].x1, 4, 0);
      assert_float_equal(s.boxes[i].y1, 6, 0);
    } else {
      wide = s.boxes[i].x1;
    }
  assert_float_equal(wide, 2.5, 0);
  assert_non_null(strstr(hone_dataset_problem(set, 0), "annotation 3"));
  hone_dataset_close(set);
  static const char *const bad[][2] = {
      {"{\"images\": [", "no JSON"},
      {"{\"images\": []}", "not a COCO document"},
      {"{\"images\": [{}], \"annotations\": [], \"categories\": []}", "image 0"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    hone_error e = {0};
    char own[2][600];
    pictures_text("bad.json", bad[i][0]);
    snprintf(own[0], 600, "%s", pictures_path("coco"));
    snprintf(own[1], 600, "%s", pictures_path("bad.json"));
    const char *path = own[0];
    assert_int_equal(
        hone_dataset_open(&(hone_dataset_options){.paths = &path, .n_paths = 1, .labels = own[1]}, &set, &e),
        HONE_ERROR_INPUT);
    if (!strstr(e.what, bad[i][1])) fail_msg("'%s' lacks '%s'", e.what, bad[i][1]);
  }
}

/* ---- the whole: a network that looks its boxes up by the picture's brightness */

static void test_command(void **state) {
  (void)state;
  hn_model *m =
      net_parse("lookup", "ir 8\nopset 17\ngraph main(%x: f32[1x1x1x1]) -> (%y: f32[1x2x6]) {\n"
                          "  const %t: f32[2x2x6] = {0.1, 0.1, 0.5, 0.5, 0.9, 0, 0.6, 0.6, 0.9, 0.9, 0.8, 0,"
                          " 0.1, 0.1, 0.5, 0.5, 0.7, 0, 0, 0, 0, 0, 0, 0}\n"
                          "  %i = Cast(%x) {to=7}\n  %j = Reshape(%i, i64[1]{1})\n"
                          "  %y = Gather(%t, %j) {axis=0}\n}\n");
  hone_error e = {0};
  char model[600], set[600];
  snprintf(model, sizeof model, "%s", pictures_path("lookup.onnx"));
  assert_int_equal(hone_model_save((const hone_model *)m, model, &e), HONE_OK);
  hone_model_release((hone_model *)m);
  /* picture 0: the first box is right, the second none; picture 1: right */
  pictures_plain("seen/a.png", 40, 20, 0, 0, 0);
  pictures_plain("seen/b.png", 20, 40, 1, 1, 1);
  pictures_text("seen/a.txt", "0 0.3 0.3 0.4 0.4\n");
  pictures_text("seen/b.txt", "0 0.3 0.3 0.4 0.4\n");
  snprintf(set, sizeof set, "%s", pictures_path("seen"));
  process p = process_run(NULL, 0,
                          (const char *[]){"eval", model, "--data", set, "--scale", "1", "--mean=-0.5",
                                           "--relative", "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  /* right, wrong, right: as in test_scorer */
  assert_float_equal(json_number_value(json_object_get(doc, "map50")), (51 + 50 * 2.0 / 3) / 101, 1e-8);
  assert_float_equal(json_number_value(json_object_get(doc, "map")), (51 + 50 * 2.0 / 3) / 101, 1e-8);
  assert_float_equal(json_number_value(json_object_get(doc, "f1_micro")), 0.8, 1e-8);
  assert_string_equal(json_string_value(json_object_get(doc, "task")), "boxes");
  json_decref(doc);
  process_free(&p);
  p = process_run(
      NULL, 0,
      (const char *[]){"eval", model, "--data", set, "--scale", "1", "--relative", "--compare", model, NULL});
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "mAP"));
  assert_non_null(strstr(p.out, "not tested"));
  process_free(&p);
  p = process_run(NULL, 0, (const char *[]){"eval", model, "--data", set, "--boxes", "yolov9", NULL});
  assert_int_equal(p.code, 2);
  process_free(&p);
  p = process_run(NULL, 0, (const char *[]){"eval", model, "--data", set, "--boxes", "nms", NULL});
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "'nms'"));
  process_free(&p);
}

/* Boxes near the end of what numbers can be are boxes that nothing finds; those beyond it are left out. */
static void test_huge_boxes(void **state) {
  (void)state;
  char model[600], set[600], labels[600];
  snprintf(model, sizeof model, "%s", pictures_path("lookup.onnx"));
  snprintf(set, sizeof set, "%s", pictures_path("seen"));
  snprintf(labels, sizeof labels, "%s", pictures_path("huge.json"));
  pictures_text("huge.json",
                "{\"images\": [{\"id\": 1, \"file_name\": \"a.png\"}, {\"id\": 2, \"file_name\": \"b.png\"}],"
                "\"categories\": [{\"id\": 1, \"name\": \"x\"}], \"annotations\": ["
                "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [4, 2, 16, 8]},"
                "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [2, 4, 8, 16]},"
                "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [-1e308, -1e308, 1.7e308, 1.7e308]},"
                "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [-1e308, 0, 1.7e308, 0], \"iscrowd\": 1},"
                "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [1e308, 0, 1e308, 1]},"
                "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [0, 9e307, 1, 1e308]}]}");
  process p = process_run(NULL, 0,
                          (const char *[]){"eval", model, "--data", set, "--labels", labels, "--scale", "1",
                                           "--mean=-0.5", "--relative", "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  /* Three to be found: right, wrong, right. */
  assert_float_equal(json_number_value(json_object_get(doc, "map50")), (34 + 33 * 2.0 / 3) / 101, 1e-8);
  assert_float_equal(json_number_value(json_object_get(doc, "map")), (34 + 33 * 2.0 / 3) / 101, 1e-8);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "data"), "problems")), 2);
  assert_non_null(strstr(p.err, "annotation 4"));
  assert_non_null(strstr(p.err, "annotation 5"));
  json_decref(doc);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),  cmocka_unit_test(test_lists),         cmocka_unit_test(test_nms),
      cmocka_unit_test(test_grids), cmocka_unit_test(test_other_outputs), cmocka_unit_test(test_yolo),
      cmocka_unit_test(test_coco),  cmocka_unit_test(test_command),       cmocka_unit_test(test_huge_boxes),
  };
  return cmocka_run_group_tests(tests, pictures_setup, pictures_teardown);
}
