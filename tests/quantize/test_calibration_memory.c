/* What calibration takes: at most twice a float run's memory, and no more for a larger set. Each part is a
 * process of its own, whose largest resident size the kernel counts. */
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

typedef struct job {
  const char *model, *calib;
} job;

static const char *file(const char *name, char *buf, size_t size) {
  const char *folder = getenv("TMPDIR");
  snprintf(buf, size, "%s/%s", folder && *folder ? folder : "/tmp", name);
  return buf;
}

static int float_run(const job *j) {
  hone_model *m = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_error e = {0};
  hone_data x;
  if (hone_model_load(j->model, &m, &e) != HONE_OK ||
      hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &e) != HONE_OK ||
      hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e) != HONE_OK ||
      hone_context_create(plan, &context, &e) != HONE_OK ||
      hone_data_random("x", hone_plan_input_desc(plan, 0), 0, 1, &x, &e) != HONE_OK)
    return 1;
  const hone_tensor *feeds[] = {&x.tensor};
  return hone_context_run(context, feeds, NULL, &e) != HONE_OK;
}

/* The last sample ends it: the check, in which float and narrow weights are packed beside each other, is left
 * out. */
static bool until_checked(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total) {
  (void)arg;
  return stage != HONE_QUANTIZE_CALIBRATES || done < total;
}

static int calibration(const job *j) {
  hone_model *m = NULL, *out = NULL;
  hone_quantize_report report;
  hone_error e = {0};
  if (hone_model_load(j->model, &m, &e) != HONE_OK) return 1;
  return hone_quantize(m,
                       &(hone_quantize_options){.calib = j->calib, .threads = 1, .progress = until_checked},
                       &out, &report, &e) != HONE_OK;
}

/* The largest resident size in KB. */
static long in_child(int (*body)(const job *), const job *j) {
  struct rusage used = {0};
  int status = -1;
  const pid_t child = fork();
  if (child == 0) _exit(body(j));
  assert_int_equal(wait4(child, &status, 0, &used), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  return used.ru_maxrss;
}

static void expect_at_most(const char *what, long kb, long most) {
  printf("%s: %ld KB, at most %ld\n", what, kb, most);
#ifndef SANITIZED
  if (kb > most) fail_msg("%s: %ld KB, at most %ld", what, kb, most);
#endif
}

static void test_twice_the_float_run(void **state) {
  (void)state;
  char path[600];
  hone_model *m = NULL;
  hone_error e = {0};
  assert_int_equal(hone_zoo_build("resnet50", &(hone_zoo_options){.size = 64}, &m, &e), HONE_OK);
  assert_int_equal(hone_model_save(m, file("resnet50.onnx", path, sizeof path), &e), HONE_OK);
  hone_model_release(m);
  const char *few = write_samples("few.npy", 4, (const int64_t[]){4, 3, 64, 64}, 3, 0, 1);
  const long run = in_child(float_run, &(job){path, NULL});
  expect_at_most("calibration", in_child(calibration, &(job){path, few}), 2 * run);
}

/* Forty megabytes of samples: as much as the first megabyte of them, but for the noise of the heap. */
static void test_any_number_of_samples(void **state) {
  (void)state;
  enum { NOISE_KB = 4096 };
  char path[600], few[600];
  hone_error e = {0};
  hn_model *m = residual_network(1, 1);
  assert_int_equal(hone_model_save(m, file("residual.onnx", path, sizeof path), &e), HONE_OK);
  hone_model_release(m);
  snprintf(few, sizeof few, "%s", write_samples("n600.npy", 4, (const int64_t[]){600, 3, 12, 12}, 3, 0, 1));
  const char *many = write_samples("n24000.npy", 4, (const int64_t[]){24000, 3, 12, 12}, 3, 0, 1);
  const long first = in_child(calibration, &(job){path, few});
  expect_at_most("24000 samples", in_child(calibration, &(job){path, many}), first + NOISE_KB);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_number_of_samples),
                                     cmocka_unit_test(test_twice_the_float_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
