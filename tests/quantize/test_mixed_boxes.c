/* hone quantize --max-drop --metric map: a detector, a part of which 8 bits ruin, on YOLO's and COCO's
 * boxes; and the page. */
#include "accuracy/pictures.h"
#include "cli/process.h"
#include "net.h"
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, SIDE = 16, HALF = SIDE / 2 };

static const char *pictures_home;
static char coco[600], model[600];

static hn_value *floats(hn_model *m, int32_t rank, const int64_t *dims, const float *v) {
  return net_constant(m, HONE_DTYPE_F32, rank, dims, v);
}

/* Brightness of each quarter, the mean of 8x8 pixels, as the score of its box. On its way it lies beside a
 * channel that is 1000, and 8 bits for both leave nothing of it. */
static hn_model *detector(void) {
  hn_model *m = net_begin();
  float mean[3 * HALF * HALF], boxes[4 * 4], classes[4] = {0};
  for (int i = 0; i < 3 * HALF * HALF; i++) mean[i] = 1.0f / (3 * HALF * HALF);
  for (int q = 0; q < 4; q++) {
    boxes[4 * q] = (float)(q % 2 * HALF), boxes[4 * q + 1] = (float)(q / 2 * HALF);
    boxes[4 * q + 2] = boxes[4 * q] + HALF, boxes[4 * q + 3] = boxes[4 * q + 1] + HALF;
  }
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, SIDE, SIDE});
  hn_value *a =
      net_op(m, "Conv", (hn_value *[]){x, floats(m, 4, (const int64_t[]){1, 3, HALF, HALF}, mean)}, 2);
  assert_true(hn_node_set_ints(a->producer, "strides", (const int64_t[]){HALF, HALF}, 2));
  a = net_op(m, "Relu", &a, 1); /* so that no two of them are one product */
  hn_value *both =
      net_op(m, "Conv",
             (hn_value *[]){a, floats(m, 4, (const int64_t[]){2, 1, 1, 1}, (const float[]){1, 0.5f}),
                            floats(m, 1, (const int64_t[]){2}, (const float[]){0, 1000})},
             3);
  hn_value *relu = net_op(m, "Relu", &both, 1);
  hn_value *one = net_op(
      m, "Conv", (hn_value *[]){relu, floats(m, 4, (const int64_t[]){1, 2, 1, 1}, (const float[]){1, 0})}, 2);
  hn_value *score = net_op(m, "Reshape",
                           (hn_value *[]){one, net_constant(m, HONE_DTYPE_I64, 1, (const int64_t[]){3},
                                                            (const int64_t[]){1, 4, 1})},
                           2);
  hn_value *rows = net_op(m, "Concat",
                          (hn_value *[]){floats(m, 3, (const int64_t[]){1, 4, 4}, boxes), score,
                                         floats(m, 3, (const int64_t[]){1, 4, 1}, classes)},
                          3);
  assert_true(hn_node_set_int(rows->producer, "axis", 2));
  net_finish(m, rows);
  return m;
}

/* One quarter of each picture is bright; how bright, and how dark the others are, differs. */
static void draw(int i) {
  uint8_t rgb[3 * SIDE * SIDE];
  char name[60], text[80];
  const int bright = i % 4;
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++) {
      const int here = x / HALF + 2 * (y / HALF);
      const int v = here == bright ? 170 + 5 * i : 10 + (7 * i + 13 * here) % 60;
      for (int k = 0; k < 3; k++) rgb[3 * (y * SIDE + x) + k] = (uint8_t)v;
    }
  snprintf(name, sizeof name, "images/%02d.png", i);
  pictures_png(name, SIDE, SIDE, rgb);
  snprintf(name, sizeof name, "labels/%02d.txt", i);
  snprintf(text, sizeof text, "0 %g %g 0.5 0.5\n", 0.25 + bright % 2 * 0.5, 0.25 + bright / 2 * 0.5);
  pictures_text(name, text);
}

static int setup(void **state) {
  (void)state;
  char text[4000] = "{\"categories\": [{\"id\": 1, \"name\": \"light\"}], \"images\": [";
  pictures_home = pictures_folder();
  for (int i = 0; i < N; i++) {
    draw(i);
    sprintf(text + strlen(text), "%s{\"id\": %d, \"file_name\": \"%02d.png\"}", i ? ", " : "", i, i);
  }
  strcat(text, "], \"annotations\": [");
  for (int i = 0; i < N; i++)
    sprintf(text + strlen(text), "%s{\"image_id\": %d, \"category_id\": 1, \"bbox\": [%d, %d, 8, 8]}",
            i ? ", " : "", i, i % 4 % 2 * HALF, i % 4 / 2 * HALF);
  strcat(text, "]}");
  pictures_text("coco.json", text);
  snprintf(coco, sizeof coco, "%s", pictures_path("coco.json"));
  snprintf(model, sizeof model, "%s", pictures_path("detector.onnx"));
  hn_model *m = detector();
  hone_error e = {0};
  if (hone_model_save(m, model, &e) != HONE_OK) fail_msg("%s", e.what);
  hone_model_release(m);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  pictures_remove();
  return 0;
}

static const json_t *layer(const json_t *doc, const char *op_type, int which) {
  size_t i;
  json_t *l;
  json_array_foreach(json_object_get(doc, "layers"), i, l) {
    if (strcmp(json_string_value(json_object_get(l, "op_type")), op_type) == 0 && which-- == 0) return l;
  }
  fail_msg("no %s", op_type);
  return NULL;
}

static double real(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static const char *word(const json_t *o, const char *key) {
  return json_string_value(json_object_get(o, key));
}

/* The layers that ruin it go back, the other stays in 8 bits, and nothing is lost on the half held out. */
static void check(const char *labels) {
  char out[600], page[600];
  snprintf(out, sizeof out, "%s", pictures_path("mixed.onnx"));
  snprintf(page, sizeof page, "%s", pictures_path("page.html"));
  remove(out), remove(page);
  process p = process_run(pictures_home, 0,
                          (const char *[]){"quantize",
                                           model,
                                           "-o",
                                           out,
                                           "--data",
                                           "images",
                                           "--scale",
                                           "1/255",
                                           "--max-drop",
                                           "0.01",
                                           "--metric",
                                           "map",
                                           "--untimed",
                                           "--html",
                                           page,
                                           "--json",
                                           "-t",
                                           "1",
                                           labels ? "--labels" : NULL,
                                           labels,
                                           NULL});
  if (p.code) fail_msg("%d: %s", p.code, p.err);
  json_t *doc = process_json(&p);
  assert_string_equal(word(doc, "verdict"), "met");
  assert_string_equal(word(doc, "metric"), "map");
  assert_true(real(doc, "all_narrow") > 0.2);
  const json_t *held = json_object_get(doc, "held_out");
  assert_true(real(held, "before") > 0.999 && real(held, "drop") <= 0.01);
  assert_int_equal(json_integer_value(json_object_get(held, "samples")), N / 2);
  assert_string_equal(word(layer(doc, "Conv", 0), "type"), "int8");
  assert_string_equal(word(layer(doc, "Conv", 1), "type"), "f32");
  assert_string_equal(word(layer(doc, "Conv", 2), "type"), "f32");
  assert_int_equal(json_integer_value(json_object_get(doc, "samples")), N / 2);
  json_decref(doc);
  process_free(&p);
  /* The page has all of it. */
  char *text = NULL;
  size_t size;
  assert_int_equal(hone_file_read(page, 1 << 20, &text, &size, NULL), HONE_OK);
  static const char *const wants[] = {
      "<!doctype html>",     "Mixed precision", "held out", "map", "int8", "a narrower type costs too much",
      "Calibration samples", "</html>"};
  for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
    if (!strstr(text, wants[i])) fail_msg("the page lacks '%s'", wants[i]);
  hone_file_free(text);
  /* And it detects as before. */
  p = process_run(pictures_home, 0,
                  (const char *[]){"eval", out, "--data", "images", "--scale", "1/255", "--json", "-t", "1",
                                   labels ? "--labels" : NULL, labels, NULL});
  if (p.code) fail_msg("%d: %s", p.code, p.err);
  doc = process_json(&p);
  assert_true(real(doc, "map") > 0.99);
  json_decref(doc);
  process_free(&p);
}

static void test_yolo(void **state) {
  (void)state;
  check(NULL);
}

static void test_coco(void **state) {
  (void)state;
  check(coco);
}

/* All in 8 bits finds nothing: what is written must not be that. */
static void test_no_budget(void **state) {
  (void)state;
  char out[600], page[600];
  snprintf(out, sizeof out, "%s", pictures_path("none.onnx"));
  snprintf(page, sizeof page, "%s", pictures_path("none.html"));
  process p = process_run(pictures_home, 0,
                          (const char *[]){"quantize", model, "-o", out, "--data", "images", "--max-drop",
                                           "0", "--metric", "top1", "--html", page, "-t", "1", NULL});
  assert_int_equal(p.code, 2); /* boxes have no Top-1 */
  assert_non_null(strstr(p.err, "classes"));
  process_free(&p);
  char *text = NULL;
  size_t size;
  assert_int_not_equal(hone_file_read(out, 1 << 20, &text, &size, NULL), HONE_OK);
  assert_int_not_equal(hone_file_read(page, 1 << 20, &text, &size, NULL), HONE_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_yolo), cmocka_unit_test(test_coco),
                                     cmocka_unit_test(test_no_budget)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
