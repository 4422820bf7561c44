/* Accuracy that is known beforehand: a network that names the strongest colour, on pictures of one colour;
 * the command with its options; and real networks on real data where they are. */
#include "accuracy/pictures.h"
#include "cli/process.h"
#include "net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>

/* What is not here cannot be tested. */
#define SHARED "/../shared/cases/"

static char model[600], dull[600], data[600];

/* f32[N,3,4,4] -> f32[N,3]: the mean of each channel, each times a weight. */
static void save_model(char *path, const char *name, int64_t batch, const float weight[3]) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (int64_t[]){batch, 3, 4, 4});
  hn_value *mean = net_op(m, "GlobalAveragePool", &x, 1);
  hn_value *flat = net_op(m, "Flatten", &mean, 1);
  hn_value *in[] = {flat, net_constant(m, HONE_DTYPE_F32, 1, (int64_t[]){3}, weight)};
  net_finish(m, net_op(m, "Mul", in, 2));
  hone_error e = {0};
  snprintf(path, 600, "%s", pictures_path(name));
  assert_int_equal(hone_model_save((const hone_model *)m, path, &e), HONE_OK);
  hone_model_release((hone_model *)m);
}

/* Classes 0 (red), 1 (green), 2 (blue); of seven pictures five are what their folder says. */
static int setup(void **state) {
  (void)state;
  pictures_folder();
  snprintf(data, sizeof data, "%s", pictures_path("colours"));
  pictures_plain("colours/0 red/1.png", 6, 5, 200, 0, 0);
  pictures_plain("colours/0 red/2.png", 6, 5, 180, 90, 0);
  pictures_plain("colours/0 red/3.png", 6, 5, 100, 120, 0); /* green */
  pictures_plain("colours/1 green/1.png", 6, 5, 0, 200, 0);
  pictures_plain("colours/1 green/2.png", 6, 5, 0, 20, 10);
  pictures_plain("colours/2 blue/1.png", 6, 5, 0, 0, 200);
  pictures_plain("colours/2 blue/2.png", 6, 5, 0, 60, 50); /* green */
  save_model(model, "model.onnx", 2, (const float[]){1, 1, 1});
  save_model(dull, "dull.onnx", 2, (const float[]){1, 0, 0});
  return 0;
}

static int teardown(void **state) {
  (void)state;
  pictures_remove();
  return 0;
}

static process hone(const char *const *argv) { return process_run(NULL, 0, argv); }

static double number(const json_t *doc, const char *name) {
  const json_t *v = json_object_get(doc, name);
  if (!json_is_number(v)) fail_msg("'%s' is no number", name);
  return json_number_value(v);
}

static void test_known(void **state) {
  (void)state;
  process p = hone((const char *[]){"eval", model, "--data", data, "--scale", "1", "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  assert_int_equal(number(doc, "samples"), 7); /* of batches of two, the last with one */
  assert_int_equal(number(doc, "right"), 5);
  assert_float_equal(number(doc, "top1"), 5.0 / 7, 1e-8);
  assert_true(json_is_null(json_object_get(doc, "top5")));
  /* red 2 of 3; green 2 of 2, but 4 were called so; blue 1 of 2 */
  assert_float_equal(number(doc, "f1_macro"), (4.0 / 5 + 4.0 / 6 + 2.0 / 3) / 3, 1e-8);
  assert_float_equal(number(doc, "f1_micro"), 5.0 / 7, 1e-8);
  const json_t *red = json_array_get(json_object_get(doc, "classes"), 0);
  assert_string_equal(json_string_value(json_object_get(red, "name")), "0 red");
  assert_string_equal(json_string_value(json_object_get(json_object_get(red, "taken_for"), "name")),
                      "1 green");
  const json_t *used = json_object_get(doc, "preprocess");
  assert_float_equal(number(used, "scale"), 1, 0);
  assert_string_equal(json_string_value(json_object_get(used, "fit")), "stretch");
  json_decref(doc);
  process_free(&p);
  /* in the other order of colours, red and blue change places */
  p = hone((const char *[]){"eval", model, "--data", data, "--scale", "1", "--bgr", "--json", NULL});
  doc = process_json(&p);
  assert_int_equal(number(doc, "right"), 2);
  json_decref(doc);
  process_free(&p);
  /* green and blue are taken away from by the mean until red wins everywhere */
  p = hone((const char *[]){"eval", model, "--data", data, "--scale", "1", "--mean", "0,1000,1000", "--json",
                            NULL});
  doc = process_json(&p);
  assert_int_equal(number(doc, "right"), 3);
  json_decref(doc);
  process_free(&p);
  p = hone((const char *[]){"eval", model, "--data", data, "--scale", "1", NULL});
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "Top-1"));
  assert_non_null(strstr(p.out, "71.43 %"));
  assert_non_null(strstr(p.out, "2 blue"));
  process_free(&p);
}

static void test_max_samples(void **state) {
  (void)state;
  process p = hone(
      (const char *[]){"eval", model, "--data", data, "--scale", "1", "--max-samples", "3", "--json", NULL});
  json_t *doc = process_json(&p), *classes = json_object_get(doc, "classes");
  assert_int_equal(number(doc, "samples"), 3); /* of 7: 0, 2 and 4: of two classes */
  assert_int_equal(number(json_array_get(classes, 0), "samples"), 2);
  assert_int_equal(number(json_array_get(classes, 1), "samples"), 1);
  json_decref(doc);
  process_free(&p);
}

/* Files that cannot be read are told, one line each, and the rest goes on. */
static void test_bad_files(void **state) {
  (void)state;
  pictures_plain("spoilt/0/a.png", 4, 4, 200, 0, 0);
  pictures_text("spoilt/0/b.png", "no picture at all");
  pictures_text("spoilt/2/c.jpg", "\xff\xd8\xff nor this");
  pictures_plain("spoilt/2/d.png", 4, 4, 0, 0, 200);
  process p = hone((const char *[]){"eval", model, "--data", pictures_path("spoilt"), "--json", NULL});
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_int_equal(number(doc, "samples"), 2);
  assert_int_equal(number(doc, "left_out"), 2);
  assert_int_equal(number(doc, "right"), 2);
  assert_non_null(strstr(p.err, "b.png"));
  assert_non_null(strstr(p.err, "c.jpg"));
  assert_int_equal(count_lines(p.err), 2);
  json_decref(doc);
  process_free(&p);
  pictures_text("broken/0/b.png", "no picture at all");
  p = hone((const char *[]){"eval", model, "--data", pictures_path("broken"), NULL});
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "none of 1 samples"));
  process_free(&p);
}

static void test_refusals(void **state) {
  (void)state;
  process p = hone((const char *[]){"eval", model, NULL});
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "--data"));
  process_free(&p);
  pictures_plain("four/7/a.png", 4, 4, 200, 0, 0); /* class 7 of a network with three outputs */
  p = hone((const char *[]){"eval", model, "--data", pictures_path("four"), NULL});
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "more classes"));
  process_free(&p);
  pictures_plain("flat/a.png", 4, 4, 200, 0, 0);
  p = hone((const char *[]){"eval", model, "--data", pictures_path("flat"), NULL});
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "no labels"));
  process_free(&p);
  static const char *const wrong[][2] = {{"--mean", "1,2"}, {"--std", "0"},   {"--scale", "1/0"},
                                         {"--resize", "0"}, {"--crop", "2x"}, {"--layout", "hwcn"},
                                         {"--pad", "256"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    p = hone((const char *[]){"eval", model, "--data", data, wrong[i][0], wrong[i][1], NULL});
    assert_int_equal(p.code, 2);
    assert_non_null(strstr(p.err, wrong[i][0]));
    process_free(&p);
  }
}

/* A worse model is called so when it is no luck: exit code 1. */
static void test_compare(void **state) {
  (void)state;
  /* 4 right of 7, 3 for red alone: too few to say */
  process p = hone(
      (const char *[]){"eval", model, "--data", data, "--scale", "1", "--compare", dull, "--json", NULL});
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p), *c = json_object_get(doc, "change");
  assert_int_equal(number(c, "only_first"), 3);
  assert_int_equal(number(c, "only_second"), 1);
  assert_float_equal(number(c, "p"), 2 * 5.0 / 16, 1e-9);
  assert_true(json_is_false(json_object_get(c, "real")));
  json_decref(doc);
  process_free(&p);
  for (int i = 0; i < 8; i++) {
    char name[64];
    snprintf(name, sizeof name, "many/%d/%d.png", 1 + i % 2, i);
    pictures_plain(name, 4, 4, 10, i % 2 ? 20 : 200, i % 2 ? 200 : 20);
  }
  p = hone((const char *[]){"eval", model, "--data", pictures_path("many"), "--scale", "1", "--compare", dull,
                            NULL});
  assert_int_equal(p.code, 1);
  assert_non_null(strstr(p.out, "a real loss"));
  process_free(&p);
  p = hone((const char *[]){"eval", dull, "--data", pictures_path("many"), "--scale", "1", "--compare", model,
                            NULL});
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "a real gain"));
  process_free(&p);
}

/* run and bench read pictures by the same options. */
static void test_shared_options(void **state) {
  (void)state;
  char picture[700];
  snprintf(picture, sizeof picture, "%s/1 green/1.png", data);
  save_model(dull, "one.onnx", 1, (const float[]){1, 1, 1});
  process p = hone(
      (const char *[]){"run", dull, "--input", picture, "--scale", "1", "--mean", "0,100,0", "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  assert_float_equal(number(json_array_get(json_object_get(doc, "outputs"), 0), "max"), 100, 1e-3);
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "preprocess"), "normalisation")),
                      "given");
  json_decref(doc);
  process_free(&p);
  p = hone((const char *[]){"bench", dull, "--input", picture, "--scale", "1", "--bgr", "-n", "2", "--json",
                            NULL});
  if (p.code) fail_msg("%s", p.err);
  doc = process_json(&p);
  assert_non_null(strstr(json_string_value(json_object_get(doc, "flags")), "--scale 1 --bgr"));
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "preprocess"), "colours")),
                      "bgr");
  json_decref(doc);
  process_free(&p);
}

/* verify on samples: each once, and as they are preprocessed; what it says of them is no accident of random
 * inputs. */
static void test_verify(void **state) {
  (void)state;
  process p = hone((const char *[]){"verify", model, "--data", data, "--scale", "1", "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  assert_int_equal(number(doc, "inputs"), 7);
  assert_int_equal(number(doc, "inputs_wanted"), 7);
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "preprocess"), "normalisation")),
                      "given");
  json_decref(doc);
  process_free(&p);
  /* models that differ in blue alone agree where there is none */
  save_model(dull, "no_blue.onnx", 2, (const float[]){1, 1, 0});
  pictures_plain("warm/a.png", 4, 4, 200, 0, 0);
  pictures_plain("warm/b.png", 4, 4, 0, 200, 0);
  pictures_plain("warm/c.png", 4, 4, 90, 50, 0);
  const char *warm = pictures_path("warm");
  p = hone((const char *[]){"verify", model, dull, "--data", warm, "--scale", "1", "-n", "3", NULL});
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "on 3 sample"));
  process_free(&p);
  p = hone((const char *[]){"verify", model, dull, "--data", data, "--scale", "1", NULL});
  assert_int_equal(p.code, 1);
  process_free(&p);
}

/* The path of a file beside the repository; false: it is not there. */
static bool shared(const char *name, char *buf, size_t size) {
  char here[4096];
  assert_non_null(getcwd(here, sizeof here));
  snprintf(buf, size, "%s%s%s", here, SHARED, name);
  if (access(buf, R_OK) == 0) return true;
  print_message("SKIP: %s is not there\n", name);
  return false;
}

static double top1(const char *network, const char *set, const char *scale) {
  process p = hone((const char *[]){"eval", network, "--data", set, "--scale", scale, "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  const double right = number(doc, "right");
  json_decref(doc);
  process_free(&p);
  return right;
}

/* As ONNX Runtime counts them. */
static void test_real(void **state) {
  (void)state;
  char network[4400], set[4400];
  if (shared("models/mnist-cntk.onnx", network, sizeof network) &&
      shared("labelled/mnist", set, sizeof set)) {
    assert_int_equal(top1(network, set, "1/255"), 9890);
    assert_int_equal(top1(network, set, "1"), 9891);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),     cmocka_unit_test(test_max_samples),
      cmocka_unit_test(test_bad_files), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_compare),   cmocka_unit_test(test_shared_options),
      cmocka_unit_test(test_verify),    cmocka_unit_test(test_real),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
