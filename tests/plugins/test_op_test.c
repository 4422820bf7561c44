/* hone op test: the sound plugin passes; each fault of mutants.c is found, named, and found again by the
 * command that the report gives. */
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
#include <sys/stat.h>

static char folder[300];

/* Plugins count only in folders that others cannot write. */
static const char *bring(const char *kind) {
  static char path[400];
  char line[2400];
  snprintf(path, sizeof path, "%s/%s", folder, kind);
  snprintf(line, sizeof line, "mkdir -p '%s' && cp '%s/%s.so' '%s/%s.so' && chmod 755 '%s' '%s/%s.so'", path,
           MUTANTS, kind, path, kind, path, path, kind);
  if (system(line) != 0) fail_msg("%s", line);
  return kind;
}

static int begin(void **state) {
  (void)state;
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "op-test")));
  skip_where_untrusted(folder);
  return 0;
}
static int end(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static process hone_(const char *const *argv) { return process_run(folder, 0, argv); }
#define HONE(...) hone_((const char *const[]){__VA_ARGS__, NULL})

/* Failures of all rows, in order. */
static json_t *failures(json_t *doc) {
  json_t *all = json_array(), *tactic, *row;
  size_t i, k;
  json_array_foreach(json_object_get(doc, "tactics"), i, tactic)
      json_array_foreach(json_object_get(tactic, "rows"), k, row)
          json_array_extend(all, json_object_get(row, "failures"));
  return all;
}

static void sound(void **state) {
  (void)state;
  process p = HONE("op", "test", "--op-path", bring("mutant_sound"), "-n", "60");
  if (p.code) fail_msg("exit %d: %s%s", p.code, p.out, p.err);
  assert_non_null(strstr(p.out, "1 tactic, 120 cases, 0 failed"));
  assert_non_null(strstr(p.out, "f64 is the reference's"));
  process_free(&p);
  p = HONE("op", "test", "test.Swish", "--op-path", "mutant_sound", "-n", "10", "--json", "--seed", "7");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p), *tactic = json_array_get(json_object_get(doc, "tactics"), 0), *row;
  size_t i;
  assert_int_equal(json_integer_value(json_object_get(doc, "cases")), 20);
  assert_int_equal(json_array_size(json_object_get(tactic, "rows")), 3);
  json_array_foreach(json_object_get(tactic, "rows"), i, row) {
    const bool wide = strcmp(json_string_value(json_object_get(row, "type")), "f64") == 0;
    assert_int_equal(json_integer_value(json_object_get(row, "cases")), wide ? 0 : 10);
    if (!wide) assert_true(json_number_value(json_object_get(row, "worst_of_bound")) > 0);
  }
  json_decref(doc);
  process_free(&p);
}

static const struct {
  const char *kind, *says;
} mutants[] = {{"tail", "elements of output 0 are wrong"},
               {"stride", "elements of output 0 are wrong"},
               {"reads", "bytes behind input 0"},
               {"writes", "bytes behind output 0"},
               {"alias", "it writes input 0"},
               {"swallow", "the reference has nan"},
               {"denormals", "denormal numbers"},
               {"alignment", "it crashed"},
               {"stale", "elements of output 0 are wrong"},
               {"state", "other values"},
               {"race", "write the same bytes of the workspace"},
               {"order", "from last to first"},
               {"broadcast", "elements of output 0 are wrong"},
               {"empty", "behind output 0"},
               {"attribute", "elements of output 0 are wrong"},
               {"rounding", "f16"},
               {"clamp", "numbers of all sizes"},
               {"overflow", "extreme numbers"},
               {"large", "it crashed"},
               {"leave", "it ended the process"}};
enum { MUTANTS_N = sizeof mutants / sizeof *mutants };

static bool among(const json_t *all, const char *says) {
  size_t i;
  const json_t *f;
  json_array_foreach(all, i, f) if (strstr(json_string_value(json_object_get(f, "what")), says) ||
                                    strstr(json_string_value(json_object_get(f, "input")), says)) return true;
  return false;
}

static void caught(void **state) {
  (void)state;
  char kind[80];
  for (int i = 0; i < MUTANTS_N; i++) {
    snprintf(kind, sizeof kind, "mutant_%s", mutants[i].kind);
    process p = HONE("op", "test", "--json", "-n", "20", "--op-path", bring(kind)); /* ten do here */
    json_t *doc = process_json(&p), *all = failures(doc);
    if (p.code != 1 || !among(all, mutants[i].says))
      fail_msg("%s: exit %d, no '%s' in %s", kind, p.code, mutants[i].says, p.out);
    json_decref(all);
    json_decref(doc);
    process_free(&p);
  }
}

static void hangs(void **state) {
  (void)state;
  process p = HONE("op", "test", "--max-seconds", "1", "-n", "12", "--op-path", bring("mutant_hang"));
  assert_int_equal(p.code, 1);
  if (!strstr(p.out, "it did not come back within 1 seconds")) fail_msg("%s", p.out);
  process_free(&p);
}

/* "hone op test test.Swish --filter ..." as words; it has no quotes. */
static void again(void **state) {
  (void)state;
  const char *words[32] = {0};
  process p = HONE("op", "test", "mutant", "--json", "-n", "10", "--op-path", bring("mutant_attribute"));
  json_t *doc = process_json(&p), *all = failures(doc), *first = json_array_get(all, 0), *doc2, *all2;
  char *command = strdup(json_string_value(json_object_get(first, "again")));
  int n = 0;
  assert_int_equal(strncmp(command, "hone op test ", 13), 0);
  for (char *save = NULL, *w = strtok_r(command + 5, " ", &save); w && n < 30; w = strtok_r(NULL, " ", &save))
    words[n++] = w;
  words[n++] = "--json";
  process q = hone_(words);
  doc2 = process_json(&q);
  all2 = failures(doc2);
  assert_int_equal(q.code, 1);
  assert_true(json_equal(json_array_get(all2, 0), first));
  json_decref(all);
  json_decref(all2);
  json_decref(doc);
  json_decref(doc2);
  free(command);
  process_free(&p);
  process_free(&q);
}

static void wrong(void **state) {
  (void)state;
  process p = HONE("op", "test", "--op-path", bring("mutant_sound"), "Swosh");
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "Swosh"));
  process_free(&p);
  p = HONE("op", "test");
  assert_int_equal(p.code, 4);
  process_free(&p);
  p = HONE("op", "test", "--op-path", "mutant_sound", "--shape", "z=3");
  assert_int_equal(p.code, 2);
  assert_non_null(strstr(p.err, "its inputs are x"));
  process_free(&p);
  /* Sizes to begin with. */
  p = HONE("op", "test", "--op-path", "mutant_sound", "--shape", "x=5x31", "--shape", "x1=31", "-n", "8");
  if (p.code) fail_msg("%s%s", p.out, p.err);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sound), cmocka_unit_test(caught),
                                     cmocka_unit_test(hangs), cmocka_unit_test(again),
                                     cmocka_unit_test(wrong)};
  return cmocka_run_group_tests(tests, begin, end);
}
