/* What takes long: interrupts in the middle of it, and tuning. */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Interrupted at a time when there are runs, however slow this machine is: what it printed as JSON. */
static json_t *cut_short(const char *command, const char *option, const char *file) {
  for (int ms = 400; ms < 60000; ms *= 2) {
    process p = INTERRUPT(ms, command, tiny, "-n", "10000000", "--json", option, file);
    assert_int_equal(p.code, 130);
    assert_non_null(strstr(p.err, "hone: interrupted"));
    json_t *doc = p.out[0] ? process_json(&p) : NULL;
    assert_true(!doc || strstr(p.err, " of 10000000 runs count\n"));
    process_free(&p);
    if (doc) return doc;
  }
  fail_msg("%s kept nothing", command);
  return NULL;
}

static void test_interrupt(void **state) {
  (void)state;
  json_t *doc = cut_short("bench", NULL, NULL);
  const json_int_t runs = json_integer_value(json_object_get(doc, "runs"));
  assert_true(runs > 0 && runs < 10000000);
  assert_int_equal(json_array_size(json_object_get(doc, "samples_ms")), runs);
  assert_true(json_is_true(json_object_get(doc, "interrupted")));
  json_decref(doc);
  doc = cut_short("profile", "-o", "cut.json");
  json_t *meta = json_object_get(doc, "meta");
  assert_int_equal(json_integer_value(json_object_get(meta, "interrupted")), 1);
  assert_int_equal(json_integer_value(json_object_get(meta, "runs")), 10000000);
  json_decref(doc);
  process p = RUN("diagnose", "cut.json");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "of 10000000 runs are complete"));
  process_free(&p);
  p = INTERRUPT(300, "zoo:yolov3", "--output-dir", "cut");
  assert_int_equal(p.code, 130);
  assert_non_null(strstr(p.err, "hone: interrupted\n"));
  process_free(&p);
  assert_false(exists("cut/report.json"));
  p = INTERRUPT(1500, "verify", "zoo:yolov3", "-n", "1000", "--max-seconds", "100");
  assert_int_equal(p.code, 130);
  assert_string_equal(p.err, "hone: interrupted\n");
  process_free(&p);
  assert_no_leftovers();
}

/* Measures, keeps, knows, and ends early with what it has. */
static void test_tune(void **state) {
  (void)state;
  /* --check compares no whole plans, so nothing is found slower. */
  process p = RUN("tune", tiny, "--cache", "tuned/t.txt", "--check", "--json");
  if (p.code != 0 && p.code != 1) fail_msg("exit %d: %s", p.code, p.err);
  json_t *doc = process_json(&p);
  const double measured = number(doc, "measured", NULL);
  assert_true(measured > 3);
  assert_int_equal(number(doc, "skipped", NULL), 0);
  assert_string_equal(json_string_value(json_object_get(doc, "file")), "tuned/t.txt");
  assert_true(json_array_size(json_object_get(doc, "steps")) >= (size_t)measured);
  const json_t *s = json_array_get(json_object_get(doc, "steps"), 0);
  static const char *const fields[] = {"name",  "what",    "shape",  "count",
                                       "state", "untuned", "chosen", "candidates"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!json_object_get(s, fields[i])) fail_msg("steps[0].%s is missing", fields[i]);
  json_decref(doc);
  process_free(&p);
  assert_true(exists("tuned/t.txt"));
  p = RUN("tune", tiny, "--cache", "tuned/t.txt", "--json");
  assert_int_equal(p.code, 0);
  doc = process_json(&p);
  assert_int_equal(number(doc, "measured", NULL), 0);
  assert_int_equal(number(doc, "known", NULL), measured);
  json_decref(doc);
  process_free(&p);
  /* Kept unless the whole is slower: whether it is depends on the machine, what follows does not. */
  p = RUN("tune", tiny, "--cache", "tuned/whole.txt", "--json");
  assert_int_equal(p.code, 0);
  doc = process_json(&p);
  const bool kept = !json_is_true(json_object_get(json_object_get(doc, "whole"), "slower"));
  assert_int_equal(exists("tuned/whole.txt"), kept);
  assert_int_equal(json_is_string(json_object_get(doc, "file")), kept);
  json_decref(doc);
  process_free(&p);
  /* where no file can be made: one line before anything is measured, and the table all the same */
  write_text("plain", "no folder\n");
  p = RUN("tune", tiny, "--cache", "plain/t.txt", "--check", "--json");
  if (p.code != 0 && p.code != 1) fail_msg("exit %d: %s", p.code, p.err);
  const char *told = strstr(p.err, "warning: "); /* a slow machine tells its progress behind it */
  assert_non_null(told);
  assert_non_null(strstr(told, "not be saved: plain/t.txt: no file can be made in plain"));
  assert_null(strstr(told + 1, "warning: "));
  doc = process_json(&p);
  assert_true(number(doc, "measured", NULL) > 3);
  json_decref(doc);
  process_free(&p);
  /* a file that is none: one line, and the plan of the cost models */
  write_text("foreign.txt", "not mine\n");
  setenv("HONE_TUNE_CACHE", "foreign.txt", 1);
  p = RUN("run", tiny, "--shape", "N=1");
  assert_int_equal(p.code, 0);
  assert_int_equal(count_lines(p.err), 1);
  assert_non_null(strstr(p.err, "foreign.txt are not used: no file of tuned tactics"));
  process_free(&p);
  p = RUN("run", tiny, "--shape", "N=1", "--no-cache");
  assert_string_equal(p.err, "");
  process_free(&p);
  setenv("HONE_TUNE_CACHE", "off", 1);
  /* Ctrl-C: what was measured is in the file */
  for (int ms = 300, tries = 1;; tries++) {
    p = INTERRUPT(ms, "tune", "zoo:mobilenetv2", "-b", "8", "--cache", "cut.txt", "--again", "--json");
    const bool done = p.code == 0; /* or it was still loading the model */
    if ((!done && p.out[0]) || tries == 40) break;
    assert_true(done || p.code == 130);
    ms = done ? ms / 2 : ms + ms / 2;
    process_free(&p);
  }
  assert_int_equal(p.code, 130);
  doc = process_json(&p);
  assert_true(json_is_true(json_object_get(doc, "interrupted")));
  /* Either steps are left, or what follows the measuring was not reached. */
  assert_true(number(doc, "skipped", NULL) > 0 || json_is_null(json_object_get(doc, "whole")));
  if (number(doc, "measured", NULL) > 0) assert_true(exists("cut.txt"));
  json_decref(doc);
  process_free(&p);
  assert_no_leftovers();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_interrupt),
      cmocka_unit_test(test_tune),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
