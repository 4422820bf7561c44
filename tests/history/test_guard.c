/* bench --save, history and gate as their users see them. */
#include "cli/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/hone-guard-XXXXXX";
static char tiny[64];

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("XDG_DATA_HOME", folder, 1);
  unsetenv("HONE_HISTORY");
  unsetenv("GITHUB_STEP_SUMMARY");
  unsetenv("GITHUB_ACTIONS");
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", tiny, "--width", "0.1", "--size", "32");
  int code = p.code;
  process_free(&p);
  return code;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static void expect(process p, int code, const char *out, const char *err) {
  if (p.code != code || (out && !strstr(p.out, out)) || (err && !strstr(p.err, err)))
    fail_msg("exit %d (wanted %d), '%s' (wanted '%s'), '%s' (wanted '%s')", p.code, code, p.out,
             out ? out : "", p.err, err ? err : "");
  process_free(&p);
}

static const char *text_of(const json_t *o, const char *key) {
  const char *t = json_string_value(json_object_get(o, key));
  return t ? t : "";
}

static void test_history_commands(void **state) {
  (void)state;
  expect(RUN("history"), 0, "no runs", NULL);
  expect(RUN("history", "--delete", "1"), 4, NULL, "no history");
  expect(RUN("bench", tiny, "-n", "5", "--save", "--tag", "n\x1b[31m", "--commit", "feed<b>"), 0,
         "saved       as run 1", NULL);
  expect(RUN("bench", tiny, "-n", "5", "-t", "1", "--save"), 0, "saved       as run 2", NULL);
  expect(RUN("bench", tiny, "-n", "5", "--tag", "x"), 2, NULL, "--tag and --commit belong to --save");
  process p = RUN("bench", tiny, "-n", "5", "--save", "--json");
  json_t *doc = process_json(&p);
  static const char *const numbers[] = {"batch",        "avg_latency_ms", "p95_latency_ms", "throughput_fps",
                                        "h2d_ms_ratio", "post_ms_ratio",  "memory_peak_mb"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    assert_true(json_is_number(json_object_get(doc, numbers[i])));
  static const char *const texts[] = {"model", "machine", "version", "flags", "profiling_date"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_true(text_of(doc, texts[i])[0]);
  assert_non_null(json_object_get(doc, "commit"));
  assert_non_null(json_object_get(doc, "temperature_c_range"));
  assert_int_equal(json_array_size(json_object_get(doc, "samples_ms")), 5);
  assert_int_equal(json_integer_value(json_object_get(doc, "history_id")), 3);
  json_decref(doc);
  process_free(&p);

  p = RUN("history");
  assert_int_equal(count_lines(p.out), 4);
  assert_null(strchr(p.out, 0x1b)); /* what a tag says does not steer the terminal */
  assert_non_null(strstr(p.out, "n?[31m"));
  process_free(&p);
  expect(RUN("history", "--filter", "tiny*", "-n", "2"), 0, "tiny.onnx", NULL);
  expect(RUN("history", "--filter", "resnet*"), 0, "no runs", NULL);
  expect(RUN("history", "--commit", "feed"), 0, "feed<b>", NULL);
  expect(RUN("history", "--plot"), 0, "3 runs", NULL);
  expect(RUN("history", "2"), 0, "--runs 5 --threads 1", NULL);
  expect(RUN("history", "99"), 2, NULL, "no run 99");
  expect(RUN("history", "last"), 2, NULL, "wants the number of a run");
  p = RUN("history", "--json");
  doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "runs")), 3);
  json_decref(doc);
  process_free(&p);
  expect(RUN("history", "-o", "all.json", "--html", "trend.html"), 0, "", NULL);
  char path[128];
  snprintf(path, sizeof path, "%s/all.json", folder);
  doc = json_load_file(path, 0, NULL);
  json_t *first = json_array_get(json_object_get(doc, "runs"), 0);
  assert_int_equal(json_array_size(json_object_get(json_object_get(first, "report"), "samples_ms")), 5);
  json_decref(doc);
  expect(RUN("history", "--delete", "1,1,7"), 0, "1 of 3 runs deleted", NULL);
  expect(RUN("history", "--delete", "1;2"), 2, NULL, "wants numbers");
  expect(RUN("history", "1"), 2, NULL, "no run 1");
}

static void test_history_errors(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/bad.db", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("not a database at all\n", f);
  fclose(f);
  setenv("HONE_HISTORY", path, 1);
  expect(RUN("history"), 3, "", "no SQLite database");
  expect(RUN("bench", tiny, "-n", "2", "--save"), 3, "", "no SQLite database");
  setenv("HONE_HISTORY", "/proc/hone/history.db", 1);
  expect(RUN("bench", tiny, "-n", "2", "--save"), 6, "", "cannot create folder");
  expect(RUN("bench", tiny, "-n", "2"), 0, "latency", NULL); /* what is not kept does not care */
  unsetenv("HONE_HISTORY");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_history_commands),
      cmocka_unit_test(test_history_errors),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
