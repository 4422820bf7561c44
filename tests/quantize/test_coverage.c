/* What hone quantize says of its calibration samples: brightness, repeats, classes, growth; and MNIST's files
 * as samples. */
#include "accuracy/pictures.h"
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/file.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 12, PIXELS = SIDE * SIDE };

/* Grey pixels around `light`, up to `contrast` from it; `mark` makes pictures of one seed different. */
static void shade(const char *name, int light, int contrast, unsigned seed, uint8_t mark) {
  uint8_t rgb[3 * PIXELS];
  for (int i = 0; i < PIXELS; i++) {
    seed = seed * 1664525u + 1013904223u;
    const int v = light + (int)(seed >> 16) % (2 * contrast + 1) - contrast;
    rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
  }
  rgb[0] = mark;
  pictures_png(name, SIDE, SIDE, rgb);
}

static void shades(const char *folder, int n, int light, int step, int contrast) {
  char name[100];
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "%s/%02d.png", folder, i);
    shade(name, light + step * i, contrast, (unsigned)i, (uint8_t)i);
  }
}

static bool says(const quantised *q, const char *text) {
  for (uint32_t i = 0; i < q->report.n_warnings; i++)
    if (strstr(q->report.warning[i], text)) return true;
  return false;
}

static quantised on(const char *calib, const char *ranges) {
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = calib, .ranges = ranges, .threads = 1});
  hone_model_release(m);
  return q;
}

static quantised on_folder(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s", pictures_path(name));
  return on(path, NULL);
}

static void expect(const char *folder, const char *text) {
  quantised q = on_folder(folder);
  static const char *const all[] = {"all pictures are dark",
                                    "all pictures are bright",
                                    "alike",
                                    "one colour",
                                    "same as another",
                                    "no sample",
                                    "unequal"};
  if (!says(&q, text)) fail_msg("%s: nothing of '%s'", folder, text);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i], text) != 0 && !strstr(text, all[i]) && says(&q, all[i]))
      fail_msg("%s: '%s', too", folder, all[i]);
  assert_true(q.report.coverage.problems > 0);
  quantised_free(&q);
}

/* ---- what is fine says nothing */

static void fine_set(const char *folder) {
  char name[100];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "%s/%s/%02d.png", folder, i < 20 ? "cat" : "dog", i);
    shade(name, 50 + i % 10 * 15, 40, (unsigned)(i % 10), (uint8_t)(100 + i));
  }
}

static void test_fine(void **state) {
  (void)state;
  char ranges[600];
  fine_set("fine");
  quantised q = on_folder("fine");
  for (uint32_t i = 0; i < q.report.n_warnings; i++) fail_msg("%s", q.report.warning[i]);
  const hone_quantize_coverage *c = &q.report.coverage;
  assert_true(c->known && c->problems == 0 && c->repeated == 0);
  assert_int_equal(c->pictures, 40);
  assert_true(c->ranges > 0 && c->growth >= 0 && c->growth < 0.01);
  assert_true(c->darkest < 0.25 && c->brightest > 0.65 && c->spread > 0.1 && c->contrast > 0.05);
  assert_true(c->brightness > c->darkest && c->brightness < c->brightest);
  assert_int_equal(c->classes, 2);
  assert_int_equal(c->missing, 0);
  assert_int_equal(c->fewest, 20);
  assert_int_equal(c->most, 20);
  quantised_free(&q);
  /* The file of ranges keeps it. */
  char path[600];
  snprintf(path, sizeof path, "%s", pictures_path("fine"));
  snprintf(ranges, sizeof ranges, "%s", pictures_path("kept/ranges.json"));
  q = on(path, ranges);
  quantised again = on(path, ranges);
  assert_true(again.report.ranges_read && !q.report.ranges_read);
  const hone_quantize_coverage *a = &q.report.coverage, *b = &again.report.coverage;
  assert_true(b->known && a->pictures == b->pictures && a->darkest == b->darkest && a->spread == b->spread &&
              a->contrast == b->contrast && a->classes == b->classes && a->fewest == b->fewest &&
              a->growth == b->growth);
  assert_string_equal(a->rarest, b->rarest);
  quantised_free(&again);
  /* One that was written before it did so still serves. */
  char *text = NULL;
  size_t size;
  assert_int_equal(hone_file_read(ranges, 16 << 20, &text, &size, NULL), HONE_OK);
  char *at = strstr(text, "\"coverage\"");
  assert_non_null(at);
  at[1] = 'x';
  pictures_file("kept/ranges.json", text, size);
  hone_file_free(text);
  again = on(path, ranges);
  assert_true(again.report.ranges_read && !again.report.coverage.known);
  assert_true(again.report.coverage.growth == a->growth && again.report.coverage.pictures == 0);
  assert_string_equal(again.report.coverage.rarest, "");
  quantised_free(&again);
  quantised_free(&q);
}

/* ---- what is not */

static void test_brightness(void **state) {
  (void)state;
  shades("night", 12, 6, 2, 4);
  expect("night", "all pictures are dark");
  shades("snow", 12, 228, 2, 6);
  expect("snow", "all pictures are bright");
  shades("scene", 12, 128, 0, 40);
  expect("scene", "alike");
  shades("flat", 8, 20, 25, 40);
  pictures_plain("flat/plain.png", SIDE, SIDE, 51, 51, 51);
  expect("flat", "1 of 9 pictures is of one colour");
  /* Of bytes, whatever the input makes of them. */
  for (int by = 0; by < 2; by++) {
    hn_model *m = residual_network(1, 1);
    char path[600];
    snprintf(path, sizeof path, "%s", pictures_path("flat/plain.png"));
    pictures_plain("one/plain.png", SIDE, SIDE, 51, 51, 51);
    snprintf(path, sizeof path, "%s", pictures_path("one"));
    const hone_preprocess own = {.normalise = true, .scale = 0.5f, .mean = {3, 2, 1}, .std = {2, 4, 8}};
    quantised q =
        quantise(m, &(hone_quantize_options){.calib = path, .preprocess = by ? &own : NULL, .threads = 1});
    assert_true(fabs(q.report.coverage.brightness - 0.2) < 1e-6);
    assert_true(q.report.coverage.contrast < 1e-4);
    quantised_free(&q);
    hone_model_release(m);
  }
}

static void test_repeated(void **state) {
  (void)state;
  char name[100];
  shades("copies", 8, 40, 20, 40);
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "copies/copy%d.png", i);
    shade(name, 40 + 20 * i, 40, (unsigned)i, (uint8_t)i);
  }
  expect("copies", "4 of 12 samples are the same as another");
}

static void test_classes(void **state) {
  (void)state;
  fine_set("lacking");
  pictures_path("lacking/owl/none"); /* the folder alone */
  expect("lacking", "1 of 3 classes has no sample ('owl')");
  fine_set("unequal");
  shades("unequal/fox", 2, 60, 60, 40);
  expect("unequal", "classes are very unequal");
  /* Labels in a file beside the pictures. */
  shades("listed", 12, 40, 15, 40);
  char list[12 * 16] = "";
  for (int i = 0; i < 12; i++) sprintf(list + strlen(list), "%02d.png %d\n", i, i % 2 ? 2 : 0);
  pictures_text("listed/labels.txt", list);
  expect("listed", "1 of 3 classes has no sample ('1')");
  /* One folder names nothing, nor do pictures without labels. */
  shades("plain", 12, 40, 15, 40);
  quantised q = on_folder("plain");
  assert_int_equal(q.report.coverage.classes, 0);
  quantised_free(&q);
}

/* The last quarter of the samples is ten times as large. */
static void test_growth(void **state) {
  (void)state;
  const int64_t dims[] = {40, 3, SIDE, SIDE}, one = 3 * PIXELS;
  float *v = malloc((size_t)(40 * one) * sizeof *v);
  unsigned seed = 5;
  for (int64_t i = 0; i < 40 * one; i++) v[i] = normal(&seed) * (i / one < 30 ? 1 : 10);
  const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 4, dims), v};
  char path[600];
  snprintf(path, sizeof path, "%s", pictures_path("grows.npy"));
  assert_int_equal(hone_data_save_npy(&t, path, NULL), HONE_OK);
  quantised q = on(path, NULL);
  assert_true(says(&q, "ranges grew by ") && says(&q, "give more samples"));
  assert_true(q.report.coverage.grown > 0 && q.report.coverage.most_growth > 2);
  assert_true(q.report.coverage.growth > 0.05 && q.report.coverage.growth <= 0.1);
  assert_true(strlen(q.report.coverage.most_grown) > 0);
  assert_int_equal(q.report.coverage.pictures, 0);
  quantised_free(&q);
  free(v);
}

/* ---- MNIST's files */

static void test_mnist(void **state) {
  (void)state;
  enum { N = 40 };
  static uint8_t pixels[16 + N * PIXELS] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, SIDE, 0, 0, 0, SIDE},
                                 labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N};
  for (int i = 0; i < N; i++) {
    labels[8 + i] = (uint8_t)(i % 4 == 3 ? 4 : i % 4); /* none is a 3 */
    for (int k = 0; k < PIXELS; k++) pixels[16 + i * PIXELS + k] = (uint8_t)((k * 7 + i * 31) % 256);
  }
  pictures_file("plain-images-idx3-ubyte", pixels, sizeof pixels);
  pictures_gz("mnist/t-images-idx3-ubyte.gz", pixels, sizeof pixels);
  pictures_gz("mnist/t-labels-idx1-ubyte.gz", labels, sizeof labels);
  char path[3][600];
  snprintf(path[0], 600, "%s", pictures_path("plain-images-idx3-ubyte"));
  snprintf(path[1], 600, "%s", pictures_path("mnist"));
  snprintf(path[2], 600, "%s", pictures_path("mnist/t-images-idx3-ubyte.gz"));
  double scale = 0;
  for (int i = 0; i < 3; i++) {
    quantised q = on(path[i], NULL);
    assert_int_equal(q.report.samples, N);
    assert_int_equal(q.report.coverage.pictures, N);
    assert_int_equal(q.report.coverage.classes, i ? 5 : 0);
    assert_int_equal(says(&q, "1 of 5 classes has no sample ('3')"), i > 0);
    const double have = layer_of(&q, "Conv", 0)->scale;
    if (i) assert_true(have == scale);
    scale = have;
    quantised_free(&q);
  }
  /* Where labels are what is wanted, they are asked for. */
  hone_dataset *set = NULL;
  hone_error e = {0};
  const char *const plain = path[0];
  assert_int_equal(hone_dataset_open(&(hone_dataset_options){.paths = &plain, .n_paths = 1}, &set, &e),
                   HONE_ERROR_INPUT);
  /* Two sets in a folder: which is meant is asked. */
  pictures_gz("mnist/u-images-idx3-ubyte.gz", pixels, sizeof pixels);
  hn_model *m = residual_network(1, 1);
  hone_model *out = NULL;
  hone_quantize_report report;
  assert_int_equal(
      hone_quantize(m, &(hone_quantize_options){.calib = path[1], .threads = 1}, &out, &report, &e),
      HONE_ERROR_INPUT);
  assert_non_null(strstr(e.hint, "name one of them"));
  hone_quantize_report_free(&report);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fine),     cmocka_unit_test(test_brightness),
                                     cmocka_unit_test(test_repeated), cmocka_unit_test(test_classes),
                                     cmocka_unit_test(test_growth),   cmocka_unit_test(test_mnist)};
  return cmocka_run_group_tests(tests, pictures_setup, pictures_teardown);
}
