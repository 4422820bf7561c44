/* Labelled data in all its forms, and what is wrong with some of it. */
#include "accuracy/pictures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

static hone_dataset *opened(const char *name, const char *labels, const char *names) {
  hone_dataset *set = NULL;
  hone_error e = {0};
  char own[3][600];
  snprintf(own[0], 600, "%s", pictures_path(name));
  if (labels) snprintf(own[1], 600, "%s", pictures_path(labels));
  if (names) snprintf(own[2], 600, "%s", pictures_path(names));
  const char *path = own[0];
  const hone_dataset_options o = {
      .paths = &path, .n_paths = 1, .labels = labels ? own[1] : NULL, .names = names ? own[2] : NULL};
  if (hone_dataset_open(&o, &set, &e) != HONE_OK) fail_msg("%s: %s: %s", name, e.where, e.what);
  return set;
}

static void refused(const char *name, const char *labels, const char *words) {
  hone_dataset *set = NULL;
  hone_error e = {0};
  char own[2][600], line[1300];
  snprintf(own[0], 600, "%s", pictures_path(name));
  if (labels) snprintf(own[1], 600, "%s", pictures_path(labels));
  const char *path = own[0];
  assert_int_not_equal(
      hone_dataset_open(
          &(hone_dataset_options){.paths = &path, .n_paths = 1, .labels = labels ? own[1] : NULL}, &set, &e),
      HONE_OK);
  assert_null(set);
  hone_error_format(&e, line, sizeof line);
  if (!strstr(line, words)) fail_msg("'%s' lacks '%s'", line, words);
}

static uint32_t cls(const hone_dataset *set, uint64_t i) {
  hone_sample s;
  assert_true(hone_dataset_sample(set, i, &s));
  return s.cls;
}

static const char *file(const hone_dataset *set, uint64_t i) {
  hone_sample s;
  assert_true(hone_dataset_sample(set, i, &s));
  return strrchr(s.name, '/') + 1;
}

static void test_folders(void **state) {
  (void)state;
  pictures_plain("pets/dog/2.png", 2, 2, 1, 2, 3);
  pictures_plain("pets/dog/1.png", 2, 2, 1, 2, 3);
  pictures_plain("pets/cat/9.png", 2, 2, 1, 2, 3);
  pictures_text("pets/cat/notes.txt", "no picture");
  pictures_text("pets/empty/x.md", "no picture");
  hone_dataset *set = opened("pets", NULL, NULL);
  assert_string_equal(hone_dataset_kind(set), "class folders");
  assert_int_equal(hone_dataset_truth(set), HONE_TRUTH_CLASS);
  assert_int_equal(hone_dataset_samples(set), 3);
  assert_int_equal(hone_dataset_classes(set), 3);
  assert_string_equal(hone_dataset_class(set, 1), "dog");
  assert_int_equal(cls(set, 0), 0);
  assert_int_equal(cls(set, 1), 1);
  assert_string_equal(file(set, 1), "1.png"); /* in the order of their names */
  assert_non_null(strstr(hone_dataset_problem(set, 0), "empty"));
  assert_null(hone_dataset_problem(set, 1));
  hone_dataset_close(set);
  /* names: their order counts, and a folder that is none of them is left out */
  pictures_text("names.txt", "n1 dog, hound\ncat\nhorse\n");
  pictures_plain("more/n1/2.png", 2, 2, 1, 2, 3);
  pictures_plain("more/cat/9.png", 2, 2, 1, 2, 3);
  pictures_plain("more/cow/9.png", 2, 2, 1, 2, 3);
  for (int as_labels = 0; as_labels < 2; as_labels++) {
    set = opened("more", as_labels ? "names.txt" : NULL, as_labels ? NULL : "names.txt");
    assert_int_equal(hone_dataset_classes(set), 3);
    assert_int_equal(hone_dataset_samples(set), 2);
    assert_int_equal(cls(set, 0), 1); /* cat */
    assert_int_equal(cls(set, 1), 0); /* n1 */
    assert_non_null(strstr(hone_dataset_problem(set, 0), "cow"));
    hone_dataset_close(set);
  }
}

/* Folders called by numbers: 10 is ten, and does not stand behind 1. */
static void test_numbers(void **state) {
  (void)state;
  pictures_plain("digits/10/a.png", 2, 2, 1, 2, 3);
  pictures_plain("digits/2/a.png", 2, 2, 1, 2, 3);
  hone_dataset *set = opened("digits", NULL, NULL);
  assert_int_equal(cls(set, 0), 10);
  assert_int_equal(cls(set, 1), 2);
  assert_int_equal(hone_dataset_classes(set), 11);
  assert_string_equal(hone_dataset_class(set, 10), "10");
  hone_dataset_close(set);
  pictures_plain("mixed/10/a.png", 2, 2, 1, 2, 3); /* beside a name they are names */
  pictures_plain("mixed/2/a.png", 2, 2, 1, 2, 3);
  pictures_plain("mixed/bird/a.png", 2, 2, 1, 2, 3);
  set = opened("mixed", NULL, NULL);
  assert_int_equal(hone_dataset_classes(set), 3);
  assert_int_equal(cls(set, 0), 0);
  assert_int_equal(cls(set, 2), 2);
  hone_dataset_close(set);
}

/* What a shell makes of DIR/CLASS/NAME: the same as DIR alone. */
static void test_paths(void **state) {
  (void)state;
  char own[3][600];
  const char *const names[] = {"birds/wren/1.png", "birds/owl/1.png", "birds/wren/2.png"};
  const char *paths[3];
  hone_dataset *set = NULL;
  hone_error e = {0};
  for (int i = 0; i < 3; i++) {
    pictures_plain(names[i], 2, 2, 1, 2, 3);
    snprintf(own[i], 600, "%s", pictures_path(names[i]));
    paths[i] = own[i];
  }
  assert_int_equal(hone_dataset_open(&(hone_dataset_options){.paths = paths, .n_paths = 3}, &set, &e),
                   HONE_OK);
  assert_int_equal(hone_dataset_samples(set), 3);
  assert_string_equal(hone_dataset_class(set, 0), "owl");
  assert_int_equal(cls(set, 0), 1);
  assert_int_equal(cls(set, 1), 0);
  hone_dataset_close(set);
}

static void test_list(void **state) {
  (void)state;
  pictures_plain("flat/a.png", 2, 2, 1, 2, 3);
  pictures_plain("flat/b c.png", 2, 2, 1, 2, 3);
  pictures_text("flat.txt", "a.png 4\n\nb c.png\t2\r\nnonsense\nb c.png,fox\n");
  hone_dataset *set = opened("flat", "flat.txt", NULL);
  assert_string_equal(hone_dataset_kind(set), "list of labels");
  assert_int_equal(hone_dataset_samples(set), 3);
  assert_int_equal(cls(set, 0), 4);
  assert_int_equal(cls(set, 1), 2);
  assert_int_equal(cls(set, 2), 5); /* a name gets the next number */
  assert_non_null(strstr(hone_dataset_problem(set, 0), ":4"));
  hone_dataset_close(set);
  pictures_text("flat/labels.txt", "a.png 1\n"); /* found by itself */
  set = opened("flat", NULL, NULL);
  assert_int_equal(hone_dataset_samples(set), 1);
  assert_int_equal(cls(set, 0), 1);
  hone_dataset_close(set);
  pictures_plain("bare/a.png", 2, 2, 1, 2, 3);
  set = opened("bare", NULL, NULL);
  assert_int_equal(hone_dataset_truth(set), HONE_TRUTH_NONE);
  hone_dataset_close(set);
}

static void test_idx(void **state) {
  (void)state;
  /* three pictures of 2 rows and 3 columns */
  uint8_t pixels[16 + 18] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3},
                      labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 2};
  for (int i = 0; i < 18; i++) pixels[16 + i] = (uint8_t)(10 * i);
  for (int packed = 0; packed < 2; packed++) {
    const char *const folder = packed ? "gz" : "idx";
    char name[2][100];
    snprintf(name[0], 100, "%s/t-images-idx3-ubyte%s", folder, packed ? ".gz" : "");
    snprintf(name[1], 100, "%s/t-labels-idx1-ubyte%s", folder, packed ? ".gz" : "");
    (packed ? pictures_gz : pictures_file)(name[0], pixels, sizeof pixels);
    (packed ? pictures_gz : pictures_file)(name[1], labels, sizeof labels);
    hone_dataset *set = opened(folder, NULL, NULL);
    assert_int_equal(hone_dataset_samples(set), 3);
    assert_int_equal(hone_dataset_classes(set), 8);
    assert_int_equal(cls(set, 0), 7);
    assert_int_equal(cls(set, 2), 2);
    hone_data d;
    hone_error e = {0};
    const hone_tensor_desc want = hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, 1, 2, 3});
    const hone_preprocess p = {.normalise = true, .scale = 1, .std = {1, 1, 1}};
    assert_int_equal(hone_dataset_load(set, 1, &want, &p, &d, NULL, &e), HONE_OK);
    for (int i = 0; i < 6; i++) assert_float_equal(((float *)d.tensor.data)[i], 60 + 10 * i, 0);
    hone_data_free(&d);
    assert_int_equal(hone_dataset_load(set, 3, &want, &p, &d, NULL, &e), HONE_ERROR_USAGE);
    hone_dataset_close(set);
  }
  pictures_file("short/t-images-idx3-ubyte", pixels, sizeof pixels - 1);
  pictures_file("short/t-labels-idx1-ubyte", labels, sizeof labels);
  refused("short", NULL, "cut off");
  pictures_file("alone/images", pixels, sizeof pixels);
  refused("alone", NULL, "labels");
  labels[7] = 2;
  pictures_file("fewer", labels, sizeof labels - 1);
  refused("alone/images", "fewer", "number of labels");
  refused("alone/images", "alone/images", "no labels");
  pictures_file("two/t-images-idx3-ubyte", pixels, sizeof pixels);
  pictures_file("two/u-images-idx3-ubyte", pixels, sizeof pixels);
  refused("two", NULL, "name one of them");
  memset(pixels + 8, 0xff, 8);
  pictures_file("huge/t-images-idx3-ubyte", pixels, sizeof pixels);
  refused("huge", NULL, "impossible");
}

static void test_cifar(void **state) {
  (void)state;
  static uint8_t records[2 * 3073], hundred[3074];
  for (int i = 0; i < 2; i++) {
    records[i * 3073] = (uint8_t)(i ? 3 : 9);
    for (int c = 0; c < 3; c++) memset(records + i * 3073 + 1 + 1024 * c, 10 * c + i, 1024);
  }
  pictures_file("test_batch.bin", records, sizeof records);
  hone_dataset *set = opened("test_batch.bin", NULL, NULL);
  assert_string_equal(hone_dataset_kind(set), "CIFAR-10");
  assert_int_equal(hone_dataset_samples(set), 2);
  assert_int_equal(cls(set, 0), 9);
  hone_data d;
  hone_error e = {0};
  const hone_tensor_desc want = hone_desc(HONE_DTYPE_U8, 4, (int64_t[]){1, 3, 32, 32});
  assert_int_equal(hone_dataset_load(set, 1, &want, NULL, &d, NULL, &e), HONE_OK);
  const uint8_t *v = d.tensor.data;
  assert_int_equal(v[0], 1);
  assert_int_equal(v[1024], 11);
  assert_int_equal(v[3071], 21);
  hone_data_free(&d);
  hone_dataset_close(set);
  hundred[0] = 5, hundred[1] = 77; /* coarse and fine */
  pictures_file("test.bin", hundred, sizeof hundred);
  set = opened("test.bin", NULL, NULL);
  assert_string_equal(hone_dataset_kind(set), "CIFAR-100");
  assert_int_equal(cls(set, 0), 77);
  hone_dataset_close(set);
}

static void test_refusals(void **state) {
  (void)state;
  refused("nowhere", NULL, "no such file");
  pictures_text("papers/readme.md", "nothing");
  refused("papers", NULL, "no data set");
  pictures_plain("one/a/1.png", 2, 2, 1, 2, 3);
  pictures_text("none.txt", "\n\n");
  refused("one", "none.txt", "no names");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_folders),  cmocka_unit_test(test_numbers), cmocka_unit_test(test_paths),
      cmocka_unit_test(test_list),     cmocka_unit_test(test_idx),     cmocka_unit_test(test_cifar),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, pictures_setup, pictures_teardown);
}
