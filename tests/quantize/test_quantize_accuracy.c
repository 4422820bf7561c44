/* What 8 bits cost on real networks with labels (../shared/cases, where it is): at most half a point of Top-1
 * by each method; calibrated on one part of the set, measured on the other. */
#include "samples.h"
#include "skipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CASES "../shared/cases/"
#define MOST_LOST 0.5 /* points */

typedef struct labelled {
  int64_t n, size; /* samples of so many numbers each */
  float *x;
  uint8_t *label;
} labelled;

static void labelled_free(labelled *s) {
  free(s->x);
  free(s->label);
}

/* ---- MNIST: idx files */

static uint8_t *unpack(const char *path, size_t head, size_t n) {
  gzFile f = gzopen(path, "rb");
  assert_non_null(f);
  uint8_t *v = malloc(n);
  assert_int_equal(gzread(f, v, (unsigned)head), (int)head);
  assert_int_equal(gzread(f, v, (unsigned)n), (int)n);
  gzclose(f);
  return v;
}

static labelled mnist(int64_t n) {
  labelled s = {.n = n, .size = 28 * 28, .x = malloc((size_t)n * 28 * 28 * sizeof(float))};
  uint8_t *pixels = unpack(CASES "labelled/mnist/t10k-images-idx3-ubyte.gz", 16, (size_t)(n * s.size));
  s.label = unpack(CASES "labelled/mnist/t10k-labels-idx1-ubyte.gz", 8, (size_t)n);
  for (int64_t i = 0; i < n * s.size; i++) s.x[i] = pixels[i];
  free(pixels);
  return s;
}

/* ---- CIFAR-10: a folder a class. As 75 pictures are few for half a point, each is measured in 9 views,
 * moved by two pixels to all sides. */

enum { SIDE = 32, VIEWS = 9 };

static void view(const float *from, int which, float *to) {
  const int dx = which % 3 * 2 - 2, dy = which / 3 % 3 * 2 - 2;
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < SIDE; y++)
      for (int x = 0; x < SIDE; x++) {
        int fx = x + dx, fy = y + dy;
        fx = fx < 0 ? 0 : fx >= SIDE ? SIDE - 1 : fx;
        fy = fy < 0 ? 0 : fy >= SIDE ? SIDE - 1 : fy;
        *to++ = from[(c * SIDE + fy) * SIDE + fx];
      }
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static size_t names_of(const char *path, char *names[64]) {
  size_t n = 0;
  DIR *d = opendir(path);
  for (const struct dirent *e; d && n < 64 && (e = readdir(d));)
    if (e->d_name[0] != '.') names[n++] = strdup(e->d_name);
  if (d) closedir(d);
  qsort(names, n, sizeof *names, by_name);
  return n;
}

static labelled cifar(void) {
  enum { MOST = 320 };
  const hone_preprocess image = {.normalise = true,
                                 .scale = 1.0f / 255,
                                 .mean = {0.4914f, 0.4822f, 0.4465f},
                                 .std = {0.2023f, 0.1994f, 0.2010f}};
  const hone_tensor_desc want = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 32, 32});
  labelled s = {.size = 3 * 32 * 32, .x = malloc(MOST * 3 * 32 * 32 * sizeof(float)), .label = malloc(MOST)};
  char *classes[64], *files[64], path[512];
  const size_t n = names_of(CASES "labelled/cifar10_150", classes);
  assert_int_equal(n, 10);
  for (size_t c = 0; c < n; c++) {
    snprintf(path, sizeof path, CASES "labelled/cifar10_150/%s", classes[c]);
    const size_t m = names_of(path, files);
    for (size_t i = 0; i < m; i++) {
      hone_data d;
      hone_error e = {0};
      snprintf(path, sizeof path, CASES "labelled/cifar10_150/%s/%s", classes[c], files[i]);
      assert_int_equal(hone_data_load(path, NULL, &want, &image, &d, &e), HONE_OK);
      assert_true(s.n < MOST);
      memcpy(s.x + s.n * s.size, d.tensor.data, (size_t)s.size * sizeof *s.x);
      s.label[s.n++] = (uint8_t)c;
      hone_data_free(&d);
      free(files[i]);
    }
    free(classes[c]);
  }
  return s;
}

/* ---- */

/* Points of Top-1 on the samples that are not for calibration: the last of every `nth` is. */
static double top1(hone_model *m, const labelled *s, int64_t nth, int views) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_error e = {0};
  int64_t right = 0, all = 0;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &e), HONE_OK);
  assert_int_equal(hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  float *moved = malloc((size_t)s->size * sizeof *moved);
  for (int64_t i = 0; i < s->n * views; i++) {
    const float *x = s->x + i / views * s->size;
    if (i / views % nth == nth - 1) continue;
    if (views > 1) view(x, (int)(i % views), moved);
    const hone_tensor in = {*hone_plan_input_desc(plan, 0), (void *)(views > 1 ? moved : x)},
                      *feeds[] = {&in};
    assert_int_equal(hone_context_run(context, feeds, NULL, &e), HONE_OK);
    const float *y = hone_context_output(context, 0)->data;
    int best = 0;
    for (int k = 1; k < 10; k++)
      if (y[k] > y[best]) best = k;
    right += best == s->label[i / views];
    all++;
  }
  free(moved);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return 100.0 * (double)right / (double)all;
}

static const char *write_part(const labelled *s, int64_t nth, int32_t rank, const int64_t *dims) {
  static char path[512];
  const char *folder = getenv("TMPDIR");
  int64_t d[HONE_MAX_RANK], n = 0;
  float *x = malloc((size_t)(s->n * s->size) * sizeof *x);
  hone_error e = {0};
  for (int64_t i = 0; i < s->n; i++)
    if (i % nth == nth - 1) memcpy(x + n++ * s->size, s->x + i * s->size, (size_t)s->size * sizeof *x);
  memcpy(d, dims, sizeof *d * (size_t)rank);
  d[0] = n;
  snprintf(path, sizeof path, "%s/part.npy", folder && *folder ? folder : "/tmp");
  assert_int_equal(hone_data_save_npy(&(hone_tensor){hone_desc(HONE_DTYPE_F32, rank, d), x}, path, &e),
                   HONE_OK);
  free(x);
  return path;
}

static void expect(const char *file, const labelled *s, int64_t nth, int views, const int64_t *dims) {
  hone_model *m = NULL;
  hone_error e = {0};
  assert_int_equal(hone_model_load(file, &m, &e), HONE_OK);
  const char *part = write_part(s, nth, 4, dims);
  const double in_float = top1(m, s, nth, views);
  for (int k = 0; k <= HONE_CALIBRATION_PERCENTILE; k++) {
    quantised q =
        quantise(m, &(hone_quantize_options){.calib = part, .method = (hone_calibration)k, .threads = 1});
    const double now = top1(q.model, s, nth, views);
    printf("%s, %s: %.2f, was %.2f\n", file, hone_calibration_name((hone_calibration)k), now, in_float);
    if (!(now >= in_float - MOST_LOST))
      fail_msg("%s, %s: %.2f, was %.2f", file, hone_calibration_name((hone_calibration)k), now, in_float);
    quantised_free(&q);
  }
  hone_model_release(m);
}

static void test_mnist(void **state) {
  (void)state;
  labelled s = mnist(3000);
  expect(CASES "models/mnist-cntk.onnx", &s, 20, 1, (const int64_t[]){0, 1, 28, 28});
  labelled_free(&s);
}

static void test_resnet20(void **state) {
  (void)state;
  labelled s = cifar();
  expect(CASES "models/resnet20_cifar10.onnx", &s, 2, VIEWS, (const int64_t[]){0, 3, SIDE, SIDE});
  labelled_free(&s);
}

int main(void) {
  if (access(CASES "labelled", R_OK) != 0) {
    puts("SKIP: ../shared/cases has the labelled sets; it is not here");
    return SKIPPED;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mnist), cmocka_unit_test(test_resnet20)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
