/* hone pipeline: lines in order, broken files told, the same by flags and by a description, outputs that
 * cannot be written, and Ctrl-C. */
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
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>

enum { PICTURES = 9 };

static char model[300], boxes[300], data[300], list[300], out[300];

static void save(hn_model *m, char *path, const char *name) {
  hone_error e = {0};
  snprintf(path, 300, "%s", pictures_path(name));
  assert_int_equal(hone_model_save((const hone_model *)m, path, &e), HONE_OK);
  hone_model_release((hone_model *)m);
}

/* f32[N,3,4,4] -> f32[N,3]: the mean of each channel. */
static void save_means(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (int64_t[]){-1, 3, 4, 4});
  hn_value *mean = net_op(m, "GlobalAveragePool", &x, 1);
  net_finish(m, net_op(m, "Flatten", &mean, 1));
  save(m, model, "colours.onnx");
}

/* Whatever the picture, a box of it. */
static void save_boxes(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (int64_t[]){1, 3, 4, 4});
  hn_value *mean = net_op(m, "GlobalAveragePool", &x, 1);
  hn_value *in[] = {net_op(m, "Flatten", &mean, 1),
                    net_constant(m, HONE_DTYPE_F32, 2, (int64_t[]){3, 6}, (const float[18]){0})};
  hn_value *sum[] = {net_op(m, "MatMul", in, 2), net_constant(m, HONE_DTYPE_F32, 2, (int64_t[]){1, 6},
                                                              (const float[]){1, 1, 3, 2, 0.75f, 1})};
  net_finish(m, net_op(m, "Add", sum, 2));
  save(m, boxes, "boxes.onnx");
}

static int setup(void **state) {
  (void)state;
  char text[4000] = "";
  pictures_folder();
  snprintf(data, sizeof data, "%s", pictures_path("data"));
  for (int i = 0; i < PICTURES; i++) {
    char name[40];
    snprintf(name, sizeof name, "data/p%d.png", i);
    if (i % 4 == 2)
      pictures_text(name, "no picture");
    else
      pictures_plain(name, 6, 5, (uint8_t)(i % 3 == 0 ? 200 : i), (uint8_t)(i % 3 == 1 ? 200 : i),
                     (uint8_t)(i % 3 == 2 ? 200 : i));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", name);
  }
  pictures_text("data/notes.md", "of another kind");
  pictures_text("list.txt", text);
  snprintf(list, sizeof list, "%s", pictures_path("list.txt"));
  snprintf(out, sizeof out, "%s", pictures_path("out.jsonl"));
  save_means();
  save_boxes();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  pictures_remove();
  return 0;
}

static process hone(const char *const *argv) { return process_run(NULL, 0, argv); }

/* Line n of JSON lines. */
static json_t *line_of(const char *text, int n) {
  json_error_t e;
  for (; n && (text = strchr(text, '\n')); n--) text++;
  assert_non_null(text);
  char *line = strndup(text, strcspn(text, "\n"));
  json_t *doc = json_loads(line, 0, &e);
  if (!doc) fail_msg("%s: %s", e.text, line);
  free(line);
  return doc;
}

static char *read_all(const char *path) {
  char *text;
  size_t size;
  hone_error e = {0};
  if (hone_file_read(path, 1 << 28, &text, &size, &e) != HONE_OK) fail_msg("%s", e.what);
  return text;
}

static double real(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  if (!json_is_number(v)) fail_msg("'%s' is no number", key);
  return json_number_value(v);
}

static void check_lines(const char *text) {
  assert_int_equal(count_lines(text), PICTURES);
  for (int i = 0; i < PICTURES; i++) {
    char name[20];
    json_t *o = line_of(text, i);
    snprintf(name, sizeof name, "p%d.png", i);
    assert_int_equal(real(o, "item"), i);
    assert_non_null(strstr(json_string_value(json_object_get(o, "name")), name));
    const json_t *error = json_object_get(o, "error"), *classes = json_object_get(o, "classes");
    assert_true((error != NULL) == (i % 4 == 2));
    assert_true((classes != NULL) == (i % 4 != 2));
    if (error) {
      assert_string_equal(json_string_value(json_object_get(error, "status")), "bad input");
      assert_non_null(strstr(json_string_value(json_object_get(error, "message")), name));
    } else {
      assert_int_equal(json_array_size(classes), i ? 2 : 1); /* the first has nothing but its red */
      assert_int_equal(real(json_array_get(classes, 0), "class"), i % 3);
      assert_float_equal(real(json_array_get(classes, 0), "score"), 200, 0);
    }
    json_decref(o);
  }
}

#define USUAL "--scale", "1", "--post", "threshold", "--min-score", "0.5", "--top", "2"

static void lines_in_order(void **state) {
  (void)state;
  process p = hone((const char *[]){"pipeline", model, "--input", data, USUAL, NULL});
  if (p.code) fail_msg("%s", p.err);
  check_lines(p.out);
  assert_non_null(strstr(p.err, "9 items in "));
  assert_non_null(strstr(p.err, ", 2 failed"));
  assert_non_null(strstr(p.err, "ceiling: "));
  process_free(&p);
  p = hone((const char *[]){"pipeline", model, "--input", data, "--scale", "1", "--post", "none,", NULL});
  assert_int_equal(p.code, 2);
  process_free(&p);
  /* top-k, as scores that are no probabilities: softmax unless a chain says otherwise */
  p = hone((const char *[]){"pipeline", model, "--input", list, "--scale", "1", "--top", "2", "-b", "4", "-o",
                            out, NULL});
  if (p.code) fail_msg("%s", p.err);
  char *text = read_all(out);
  for (int i = 0; i < PICTURES; i++) {
    json_t *o = line_of(text, i);
    if (i % 4 != 2)
      assert_float_equal(real(json_array_get(json_object_get(o, "classes"), 0), "score"), 1, 1e-6);
    json_decref(o);
  }
  hone_file_free(text);
  assert_non_null(strstr(p.out, "batch 4"));
  process_free(&p);
}

/* The same twice, from a description and from options; and options count more. */
static void by_description(void **state) {
  (void)state;
  pictures_text("names.txt", "red\ngreen\nblue\n");
  pictures_text("colours.pipeline.json",
                "{\"pre\": {\"scale\": 1, \"mean\": 0},\n"
                " \"post\": [{\"op\": \"threshold\", \"least\": -0, \"k\": 2, \"labels\": \"names.txt\"}]}");
  pictures_text("other.json", "{\"pre\": {\"scale\": 2},\n \"post\": [{\"op\": \"top-q\"}]}");
  process p = hone((const char *[]){"pipeline", model, "-i", data, "--min-score", "1e-9", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *o = line_of(p.out, 1);
  const json_t *first = json_array_get(json_object_get(o, "classes"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "label")), "green");
  assert_float_equal(real(first, "score"), 200, 0);
  json_decref(o);
  process_free(&p);
  p = hone((const char *[]){"pipeline", model, "-i", data, "--scale", "2", "-o", out, "--json", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  assert_non_null(strstr(json_string_value(json_object_get(doc, "description")), "colours.pipeline.json"));
  const json_t *s = json_object_get(doc, "pipeline");
  assert_int_equal(real(s, "items"), PICTURES);
  assert_int_equal(real(s, "failed"), 2);
  assert_true(json_is_array(json_object_get(s, "course")));
  const json_t *ms = json_object_get(s, "item_ms");
  assert_float_equal(real(ms, "pre") + real(ms, "h2d") + real(ms, "infer") + real(ms, "d2h") +
                         real(ms, "post") + real(ms, "idle") + real(ms, "residual"),
                     real(ms, "total"), 1e-6 * (1 + real(ms, "total")));
  json_decref(doc);
  char *text = read_all(out);
  o = line_of(text, 1);
  assert_float_equal(real(json_array_get(json_object_get(o, "classes"), 0), "score"), 400, 0);
  json_decref(o);
  hone_file_free(text);
  process_free(&p);
  p = hone((const char *[]){"pipeline", model, "-i", data, "--pipeline", pictures_path("other.json"), NULL});
  assert_int_equal(p.code, 3);
  assert_non_null(strstr(p.err, "other.json:2:12: "));
  process_free(&p);
  remove(pictures_path("colours.pipeline.json"));
}

/* Lines without their times. */
static json_t *without_times(const char *text) {
  json_t *lines = json_array();
  for (int i = 0; i < PICTURES; i++) {
    json_t *o = line_of(text, i);
    json_object_del(o, "ms");
    assert_int_equal(json_array_append_new(lines, o), 0);
  }
  return lines;
}

/* Scale, mean and order of colours come from the description, whoever applies them. */
static void inputs_as_they_come(void **state) {
  (void)state;
  static const char *const types[][5] = {{NULL},
                                         {"--input-type", "u8"},
                                         {"--input-type", "u8", "--input-layout", "nhwc"},
                                         {"--input-layout", "nhwc"},
                                         {"--input-type", "f16"}};
  json_t *first = NULL;
  pictures_text("colours.pipeline.json",
                "{\"pre\": {\"scale\": 1, \"mean\": [0, 1, 2], \"std\": [1, 2, 4], \"bgr\": true},\n"
                " \"post\": [{\"op\": \"threshold\", \"least\": -0}]}");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const char *command[12] = {"pipeline", model, "-i", data, "-b", i % 2 ? "2" : "1"};
    for (size_t k = 0; types[i][k]; k++) command[6 + k] = types[i][k];
    process p = hone(command);
    if (p.code) fail_msg("%s", p.err);
    json_t *lines = without_times(p.out);
    if (!first)
      first = json_incref(lines);
    else if (!json_equal(first, lines))
      fail_msg("case %zu: %s", i, p.out);
    json_decref(lines);
    process_free(&p);
  }
  json_decref(first);
  remove(pictures_path("colours.pipeline.json"));
  process p = hone((const char *[]){"pipeline", model, "-i", data, "--input-type", "u7", NULL});
  assert_int_equal(p.code, 2);
  process_free(&p);
}

static void boxes_in_pixels_of_the_picture(void **state) {
  (void)state;
  process p = hone((const char *[]){"pipeline", boxes, "-i", data, "--boxes", "xyxy-score-class", NULL});
  if (p.code) fail_msg("%s", p.err);
  json_t *o = line_of(p.out, 0);
  const json_t *box = json_array_get(json_object_get(o, "boxes"), 0), *at = json_object_get(box, "box");
  assert_float_equal(real(box, "score"), 0.75, 0);
  assert_int_equal(real(box, "class"), 1);
  const double want[] = {1.5, 1.25, 4.5, 2.5}; /* 6 x 5 pixels shown in 4 x 4 */
  for (size_t k = 0; k < 4; k++) assert_float_equal(json_number_value(json_array_get(at, k)), want[k], 1e-9);
  json_decref(o);
  process_free(&p);
}

/* A file each; the outputs beside it where nothing was made of them. */
static void into_a_folder(void **state) {
  (void)state;
  char folder[320], file[400];
  snprintf(folder, sizeof folder, "%s/", pictures_path("results/of/it"));
  process p = hone((const char *[]){"pipeline", model, "-i", list, "-o", folder, "--post", "none", "--scale",
                                    "1", "--html", pictures_path("page.html"), NULL});
  if (p.code) fail_msg("%s", p.err);
  assert_non_null(strstr(p.out, "9 items in "));
  process_free(&p);
  snprintf(file, sizeof file, "%sp1.png.json", folder);
  char *text = read_all(file);
  json_t *o = json_loads(text, 0, NULL);
  hone_file_free(text);
  const json_t *output = json_array_get(json_object_get(o, "outputs"), 0);
  hone_data array;
  snprintf(file, sizeof file, "%s%s", folder, json_string_value(json_object_get(output, "file")));
  const hone_tensor_desc any = {.rank = -1};
  assert_int_equal(hone_data_load(file, NULL, &any, NULL, &array, NULL), HONE_OK);
  assert_float_equal(((const float *)array.tensor.data)[1], 200, 0);
  hone_data_free(&array);
  json_decref(o);
  text = read_all(pictures_path("page.html"));
  assert_non_null(strstr(text, "<svg"));
  assert_non_null(strstr(text, "ceiling"));
  hone_file_free(text);
}

static void what_cannot_be_written(void **state) {
  (void)state;
  process p = hone((const char *[]){"pipeline", model, "-i", data, "-o", "/dev/full", NULL});
  assert_int_equal(p.code, 6);
  assert_non_null(strstr(p.err, "hone: error: /dev/full: cannot write: "));
  process_free(&p);
  char folder[320];
  snprintf(folder, sizeof folder, "%s/nowhere/all.jsonl", data);
  p = hone((const char *[]){"pipeline", model, "-i", data, "-o", folder, NULL});
  assert_int_equal(p.code, 6);
  process_free(&p);
  /* a limit of a file's size stands in for a full disk: nothing is left */
  snprintf(folder, sizeof folder, "%s/", pictures_path("small"));
  const struct rlimit none = {8, RLIM_INFINITY};
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  remove(out);
  setrlimit(RLIMIT_FSIZE, &none);
  p = hone((const char *[]){"pipeline", model, "-i", data, "-o", folder, NULL});
  setrlimit(RLIMIT_FSIZE, &before);
  assert_true(p.code == 6);
  assert_int_equal(access(folder, F_OK), -1);
  process_free(&p);
}

/* What is under way comes to its end and is told; nothing else begins. */
static void interrupted(void **state) {
  (void)state;
  enum { LINES = 300000 };
  char *text = malloc(LINES * 12 + 1), many[300];
  for (int i = 0; i < LINES; i++) memcpy(text + (size_t)i * 12, "data/p0.png\n", 13);
  pictures_text("many.txt", text);
  free(text);
  snprintf(many, sizeof many, "%s", pictures_path("many.txt"));
  remove(out);
  process p = process_run(NULL, 600, (const char *[]){"pipeline", model, "-i", many, "-o", out, NULL});
  assert_int_equal(p.code, 130);
  assert_non_null(strstr(p.err, "hone: interrupted"));
  if (access(out, F_OK) == 0) { /* otherwise it had not begun */
    char *lines = read_all(out), kept[60];
    const int n = count_lines(lines);
    snprintf(kept, sizeof kept, "%d items were finished", n);
    assert_non_null(strstr(p.err, kept));
    assert_true(n < LINES);
    for (int i = n > 30 ? n - 30 : 0; i < n; i++) {
      json_t *o = line_of(lines, i);
      assert_int_equal(real(o, "item"), i);
      assert_null(json_object_get(o, "error"));
      json_decref(o);
    }
    hone_file_free(lines);
  }
  process_free(&p);
}

static void wrong_use(void **state) {
  (void)state;
  static const struct {
    const char *argv[6];
    int code;
    const char *says;
  } cases[] = {
      {{"--json"}, 2, "--input wants"},
      {{"-i", data, "--json"}, 2, "--output must be"},
      {{"-i", data, "--workers", "pre=0"}, 2, "pre=N,post=N"},
      {{"-i", data, "--post", "softmax,boxes"}, 2, "--post knows no"},
      {{"-i", data, "--boxes", "v9"}, 2, "--boxes knows no"},
      {{"-i", "/nowhere"}, 3, "/nowhere"},
      {{"-i", data, "--in-flight", "100000"}, 2, "in flight"},
      {{"-i", data, "--labels", "/nowhere"}, 3, "/nowhere"},
      {{"-i", data, "--pipeline", "/nowhere"}, 3, "/nowhere"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *argv[10] = {"pipeline", model};
    for (int k = 0; k < 6 && cases[i].argv[k]; k++) argv[k + 2] = cases[i].argv[k];
    process p = hone(argv);
    if (p.code != cases[i].code || !strstr(p.err, cases[i].says))
      fail_msg("%s %s: %d %s", argv[2], argv[4] ? argv[4] : "", p.code, p.err);
    process_free(&p);
  }
  /* nothing that can be read */
  pictures_text("bad/a.png", "no picture");
  process p = hone((const char *[]){"pipeline", model, "-i", pictures_path("bad"), NULL});
  assert_int_equal(p.code, 3);
  assert_int_equal(count_lines(p.out), 1);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_in_order),      cmocka_unit_test(by_description),
      cmocka_unit_test(inputs_as_they_come), cmocka_unit_test(boxes_in_pixels_of_the_picture),
      cmocka_unit_test(into_a_folder),       cmocka_unit_test(what_cannot_be_written),
      cmocka_unit_test(interrupted),         cmocka_unit_test(wrong_use)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
