/* hone op bench: what it measures, what it says of it, and where it writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/process.h"
#include "plugins/untrusted.h"
#include "temporary.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[300];

static int begin(void **state) {
  (void)state;
  char line[2400];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "op-bench")));
  skip_where_untrusted(folder);
  snprintf(line, sizeof line,
           "cd '%s' && mkdir sound slow && cp '%s/mutant_sound.so' sound && cp '%s/mutant_slow.so' slow && "
           "chmod 755 sound slow */*.so",
           folder, MUTANTS, MUTANTS);
  if (system(line) != 0) fail_msg("%s", line);
  return 0;
}
static int end(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static process hone_(const char *const *argv) { return process_run(folder, 0, argv); }
#define HONE(...) hone_((const char *const[]){__VA_ARGS__, NULL})

static double number(const json_t *o, const char *name) {
  return json_number_value(json_object_get(o, name));
}
static const char *word(const json_t *o, const char *name) {
  return json_string_value(json_object_get(o, name));
}

static void measured(void **state) {
  (void)state;
  static const char *const roles[] = {"tactic", "unfused nodes", "without the operator"};
  process p = HONE("op", "bench", "--op-path", "sound", "--shape", "x=2x3x16x8", "-n", "7", "-w", "1", "-t",
                   "2", "--max-seconds", "1", "--markdown", "table.md", "--json");
  if (p.code) fail_msg("%s%s", p.out, p.err);
  json_t *doc = process_json(&p), *race = json_array_get(json_object_get(doc, "races"), 0);
  const json_t *versions = json_object_get(race, "versions");
  assert_int_equal(json_array_size(json_object_get(doc, "races")), 1);
  assert_string_equal(word(race, "shape"), "f32[2x3x16x8]");
  assert_int_equal(json_array_size(versions), 3);
  assert_true(json_is_number(json_object_get(doc, "dispatch_us")));
  for (size_t i = 0; i < 3; i++) {
    const json_t *v = json_array_get(versions, i);
    assert_string_equal(word(v, "role"), roles[i]);
    assert_int_equal(json_integer_value(json_object_get(v, "runs")), 7);
    assert_true(number(v, "mean_us") > 0);
    assert_true(number(v, "median_us") > 0);
    assert_true(number(v, "p95_us") >= number(v, "median_us"));
    /* 768 elements: in and out, or each of the two nodes for itself. */
    assert_true(number(v, "bytes") == (i == 1 ? 5 : 2) * 768 * 4);
    assert_int_equal(json_is_null(json_object_get(v, "speedup_against_unfused")), i == 1);
    assert_true(json_is_null(json_object_get(v, "speedup_against_other_tactics"))); /* there is none */
  }
  assert_string_equal(word(json_array_get(versions, 0), "version"), "swish_chunks");
  assert_string_equal(word(json_array_get(versions, 1), "version"), "unfused: Sigmoid, Mul");
  json_decref(doc);
  process_free(&p);
  char path[400], text[4000] = "";
  snprintf(path, sizeof path, "%s/table.md", folder);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  assert_non_null(strstr(text, "| swish_chunks | f32[2x3x16x8] |"));
  assert_non_null(strstr(text, "| unfused: Sigmoid, Mul | f32[2x3x16x8] |"));
  assert_int_equal(count_lines(text), 9);
}

static void not_worth_it(void **state) {
  (void)state;
  process p = HONE("op", "bench", "mutant", "--op-path", "slow", "--shape", "x=8", "-n", "15", "-w", "0",
                   "--max-seconds", "1");
  if (p.code || !strstr(p.out, "not worth it: slower than what it replaces")) fail_msg("%s%s", p.out, p.err);
  process_free(&p);
}

static void wrong(void **state) {
  (void)state;
  process p = HONE("op", "bench", "--op-path", "sound", "--shape", "x=2x3", "--shape", "x1=4");
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "another length"));
  process_free(&p);
  p = HONE("op", "bench", "--op-path", "sound", "--shape", "y=2x3");
  assert_int_equal(p.code, 2);
  process_free(&p);
  p = HONE("op", "bench", "nothing", "--op-path", "sound");
  assert_int_equal(p.code, 2);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measured), cmocka_unit_test(not_worth_it),
                                     cmocka_unit_test(wrong)};
  return cmocka_run_group_tests(tests, begin, end);
}
