/* hone bench --scenario and --curve as users see them. No figure is looked at that depends on speed. */
#include "cli/process.h"
#include "temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];
static char tiny[160];

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})
/* A test that any machine passes: short, with a bound of an hour. */
#define SHORT "-t", "1", "--min-duration", "0s", "--min-queries", "70"
#define SERVER "--scenario", "server", "--latency-bound", "1h"

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-load"))) return -1;
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", tiny, "--width", "0.1", "--size", "32");
  const int code = p.code;
  process_free(&p);
  return code;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static json_t *answered(process p, const char *key, json_t **doc) {
  if (p.code != 0) fail_msg("exit %d: %s", p.code, p.err);
  *doc = process_json(&p);
  process_free(&p);
  json_t *of = json_object_get(*doc, key);
  assert_non_null(of);
  assert_true(json_is_false(json_object_get(*doc, "interrupted")));
  assert_non_null(json_object_get(*doc, "machine"));
  return of;
}

static json_int_t count(const json_t *of, const char *key) {
  const json_t *v = json_object_get(of, key);
  assert_true(json_is_integer(v));
  return json_integer_value(v);
}

static void test_scenarios(void **state) {
  (void)state;
  static const struct {
    const char *name, *option, *value;
    json_int_t samples; /* at least */
  } rows[] = {{"single", "--percentile", "80", 70},
              {"multi", "--query-samples", "3", 210},
              {"offline", "--qps", "500", 70},
              {"offline", "--in-flight", "2", 70},
              {"offline", "--streams", "2", 70}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    json_t *doc;
    const char *const percentile = strcmp(rows[i].name, "multi") == 0 ? "--percentile" : NULL;
    const json_t *r = answered(RUN("bench", tiny, "--json", SHORT, "--scenario", rows[i].name, rows[i].option,
                                   rows[i].value, percentile, "80"),
                               "load", &doc);
    assert_string_equal(json_string_value(json_object_get(r, "scenario")), rows[i].name);
    assert_true(json_is_true(json_object_get(r, "valid")));
    assert_true(json_is_null(json_object_get(r, "why")));
    assert_true(count(r, "samples") >= rows[i].samples);
    json_decref(doc);
  }
}

static void test_server(void **state) {
  (void)state;
  json_t *doc;
  const json_t *r =
      answered(RUN("bench", tiny, "--json", SHORT, SERVER, "--qps", "1000", "--percentile", "90",
                   "--in-flight", "2", "--samples", "5", "--load-seeds", "1,2,18446744073709551615"),
               "load", &doc);
  const json_t *s = json_object_get(r, "settings");
  assert_true(json_is_true(json_object_get(r, "valid")));
  assert_int_equal(count(r, "queries"), 70);
  assert_int_equal(count(r, "in_flight"), 2);
  assert_int_equal(count(s, "samples"), 5);
  assert_string_equal(json_string_value(json_array_get(json_object_get(s, "seeds"), 2)),
                      "18446744073709551615");
  json_decref(doc);
  /* Too few for 99 %. */
  r = answered(RUN("bench", tiny, "--json", SHORT, SERVER, "--qps", "1000"), "load", &doc);
  assert_true(json_is_false(json_object_get(r, "valid")));
  assert_string_equal(json_string_value(json_object_get(r, "why")),
                      "early stopping wants 459 queries with 0 late, not 70");
  assert_true(json_is_false(json_object_get(json_object_get(r, "checks"), "early_stopping")));
  assert_true(json_is_true(json_object_get(json_object_get(r, "checks"), "latency_bound")));
  json_decref(doc);
}

/* A bound below any run. */
static void test_search(void **state) {
  (void)state;
  json_t *doc;
  const json_t *r = answered(RUN("bench", tiny, "--json", SHORT, "--scenario", "server", "--latency-bound",
                                 "0.001us", "--percentile", "50"),
                             "search", &doc);
  assert_true(json_is_null(json_object_get(r, "qps")));
  assert_string_equal(json_string_value(json_object_get(r, "limit")), "runs");
  assert_int_equal(json_array_size(json_object_get(r, "trials")), 1);
  json_decref(doc);
  process p = RUN("bench", tiny, SHORT, "--scenario", "server", "--latency-bound", "0.001us");
  assert_int_equal(p.code, 0);
  assert_non_null(
      strstr(p.out, "highest     no rate that was tried is VALID\nlimit       a run alone takes "));
  process_free(&p);
}

static void test_curve(void **state) {
  (void)state;
  json_t *doc, *point;
  size_t i;
  const json_t *r = answered(
      RUN("bench", tiny, "--json", SHORT, "--curve", "3", "-b", "2", "--html", "curve.html"), "curve", &doc);
  const json_t *points = json_object_get(r, "points");
  assert_int_equal(json_array_size(points), 3);
  assert_in_range(count(r, "knee"), 1, 3);
  json_array_foreach(points, i, point) {
    assert_int_equal(count(point, "in_flight"), i + 1);
    assert_int_equal(count(point, "rows"), 2);
    assert_null(json_object_get(point, "valid")); /* no scenario of MLPerf */
  }
  json_decref(doc);
  char command[200];
  snprintf(command, sizeof command, "test \"$(grep -c '<circle' '%s/curve.html')\" = 6", folder);
  assert_int_equal(system(command), 0);
}

/* Inputs from a file: one sample, unless more are asked for. */
static void test_input(void **state) {
  (void)state;
  json_t *doc;
  const json_t *r = answered(RUN("bench", tiny, "--json", SHORT, "--scenario", "single", "-i", "input=0.5",
                                 "--shape", "input=1x3x32x32"),
                             "load", &doc);
  assert_int_equal(count(json_object_get(r, "settings"), "samples"), 1);
  json_decref(doc);
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *argv[6], *says;
  } rows[] = {
      {{"--scenario", "serve"}, "did you mean 'server'?"},
      {{"--scenario", "server"}, "wants --latency-bound TIME"},
      {{"--qps", "3"}, "--qps belongs to --scenario server or offline"},
      {{"--scenario", "single", "--qps", "3"}, "--qps belongs to --scenario server or offline"},
      {{"--scenario", "single", "--in-flight", "2"},
       "--in-flight belongs to --scenario multi, server or offline"},
      {{"--scenario", "single", "--streams", "2"},
       "--streams belongs to --scenario multi, server or offline"},
      {{"--streams", "2", "--in-flight", "2"}, "--in-flight belongs to --scenario multi, server or offline"},
      {{"--scenario", "offline", "--streams", "2", "--in-flight", "2"},
       "--streams and --in-flight exclude each other"},
      {{"--streams", "2", "-n", "3"}, "--runs and --streams exclude each other"},
      {{"--scenario", "multi", "--latency-bound", "1s"}, "--latency-bound belongs to --scenario server"},
      {{"--scenario", "server", "--latency-bound", "0ms"}, "--latency-bound wants a time such as 15ms"},
      {{"--scenario", "single", "--min-duration", "3x"}, "--min-duration wants a time such as 15ms"},
      {{"--scenario", "single", "-n", "3"}, "--runs and --scenario exclude each other"},
      {{"--curve", "2", "--save"}, "--save and --curve exclude each other"},
      {{"--scenario", "single", "--curve", "3"}, "--scenario and --curve exclude each other"},
      {{"--curve", "2000"}, "at most 1024 runs"},
      {{"--scenario", "single", "--percentile", "100"}, "--percentile wants a number from 50 to 99.99"},
      {{"--scenario", "single", "--load-seeds", "1,2"}, "--load-seeds wants three whole numbers"},
      {{"--scenario", "single", "--load-seeds", "1,-2,3"}, "--load-seeds wants three whole numbers"},
      {{"--scenario", "single", "--html", "x.html"}, "--html belongs to --curve"},
      {{"--min-queries", "3"}, "--min-queries belongs to --scenario or --curve"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *const *a = rows[i].argv;
    process p = RUN("bench", tiny, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (p.code != 2 || count_lines(p.err) != 1 || !strstr(p.err, rows[i].says))
      fail_msg("exit %d: '%s' does not say '%s'", p.code, p.err, rows[i].says);
    assert_string_equal(p.out, "");
    process_free(&p);
  }
}

/* Ctrl-C and --max-seconds: what was measured is told. */
static void test_ended(void **state) {
  (void)state;
  json_t *doc = NULL;
  for (int ms = 400; !doc && ms < 60000; ms *= 2) { /* the process may still be loading */
    process p = process_run(folder, ms,
                            (const char *const[]){"bench", tiny, "--json", SERVER, "--qps", "100", "-t", "1",
                                                  "--min-duration", "1h", "--samples", "2", NULL});
    assert_int_equal(p.code, 130);
    assert_non_null(strstr(p.err, "hone: interrupted"));
    if (p.out[0]) {
      assert_non_null(strstr(p.err, " queries count\n"));
      doc = process_json(&p);
      const json_t *r = json_object_get(doc, "load");
      assert_true(json_is_true(json_object_get(r, "ended_early")));
      assert_true(json_is_false(json_object_get(r, "valid")));
      assert_true(json_is_true(json_object_get(doc, "interrupted")));
    }
    process_free(&p);
  }
  assert_non_null(doc);
  json_decref(doc);
  process p =
      RUN("bench", tiny, SERVER, "--max-seconds", "0.1", "--min-duration", "1h", "-t", "1", "--samples", "2");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "highest     no rate that was tried is VALID"));
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scenarios), cmocka_unit_test(test_server), cmocka_unit_test(test_search),
      cmocka_unit_test(test_curve),     cmocka_unit_test(test_input),  cmocka_unit_test(test_refused),
      cmocka_unit_test(test_ended),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
