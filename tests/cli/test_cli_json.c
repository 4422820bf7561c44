/* What each command says as JSON, and the reports and records that it writes. */
#include "cli/command.h"

#include "base/os.h"
#include "improve/roofs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

static void test_inspect_json(void **state) {
  (void)state;
  process p = RUN("inspect", tiny, "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  static const char *const totals[] = {"flops", "macs", "params", "bytes", "peak_memory_bytes"};
  for (size_t i = 0; i < 5; i++) assert_true(number(doc, "totals", totals[i]) > 0);
  assert_int_equal(json_array_size(json_object_get(doc, "nodes")), 152);
  const json_t *input = json_array_get(json_object_get(doc, "inputs"), 0);
  assert_string_equal(json_string_value(json_object_get(input, "name")), "input");
  assert_true(json_is_true(json_object_get(input, "chosen"))); /* the batch is symbolic */
  json_decref(doc);
  process_free(&p);
}

static void test_bench_json(void **state) {
  (void)state;
  process p = RUN("bench", tiny, "-t", "1", "-b", "2", "-n", "7", "-w", "3", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  static const char *const latency[] = {"median", "mean", "p50", "p95", "min"};
  for (size_t i = 0; i < 5; i++) assert_true(number(doc, "latency_ms", latency[i]) > 0);
  number(doc, "latency_ms", "cv");
  assert_true(number(doc, "throughput_fps", NULL) > 0);
  assert_true(number(doc, "memory_peak_mb", NULL) > 0);
  assert_true(number(doc, "load_ms", NULL) > 0);
  assert_int_equal(number(doc, "threads", NULL), 1);
  assert_int_equal(number(doc, "batch", NULL), 2);
  assert_int_equal(number(doc, "runs", NULL), 7);
  json_decref(doc);
  process_free(&p);
}

static const json_t *with(const json_t *list, const char *key, const char *value) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    const char *text = json_string_value(json_object_get(item, key));
    if (text && strcmp(text, value) == 0) return item;
  }
  fail_msg("nothing has %s '%s'", key, value);
  return NULL;
}

/* ---- a machine at rest, whose peaks are kept: this one may have no time for them */

static hone_status meter_open(hn_roof_meter *meter, const hone_roofs *about, hone_error *error) {
  (void)meter, (void)about, (void)error;
  return HONE_OK;
}
static void meter_close(hn_roof_meter *meter) { (void)meter; }
static double meter_rate(hn_roof_meter *meter, hn_roof_figure figure) {
  (void)meter;
  return figure == HN_ROOF_f32_gflops ? 200 : 20;
}
static void meter_load(hn_roof_meter *meter, hn_load *now) {
  static double seconds;
  seconds += 0.1;
  *now = (hn_load){seconds, seconds * meter->processors, seconds * meter->processors, 0};
}

static void keep_peaks(void) {
  hn_roof_meter meter = {hn_cpu_count(), meter_open, meter_close, meter_rate, meter_load, 0};
  hone_roofs r;
  setenv("HONE_ROOF_SECONDS", "60", 1); /* of the meter's */
  unsetenv("HONE_ROOF_QUICK");
  assert_int_equal(hn_roofs_measure(&meter, 0, &(hone_roofs_options){.again = true}, &r, NULL), HONE_OK);
  assert_true(r.quiet);
  setenv("HONE_ROOF_SECONDS", "1", 1);
  setenv("HONE_ROOF_QUICK", "1", 1);
}

/* What static analysis says beyond counting. */
static void test_inspect_analysis(void **state) {
  (void)state;
  char peaks[160];
  snprintf(peaks, sizeof peaks, "%s/peaks", folder);
  setenv("XDG_CACHE_HOME", peaks, 1);
  keep_peaks();
  process p = RUN("inspect", tiny, "--json");
  setenv("XDG_CACHE_HOME", folder, 1);
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p), *item;
  const double ridge = number(doc, "roofs", "ridge_flop_per_byte");
  double flops = 0, share = 0;
  size_t i;
  json_array_foreach(json_object_get(doc, "nodes"), i, item) {
    const double work = number(item, "flops", NULL), bytes = number(item, "bytes", NULL);
    const char *bound = json_string_value(json_object_get(item, "bound"));
    flops += work;
    if (bytes > 0 && strcmp(json_string_value(json_object_get(item, "dtype")), "f32") == 0)
      assert_string_equal(bound, work / bytes >= ridge ? "compute" : "memory");
  }
  json_array_foreach(json_object_get(doc, "quantisation"), i, item) share += number(item, "flops_pct", NULL);
  assert_true(flops == number(doc, "totals", "flops") && fabs(share - 100) < 0.1);
  assert_string_equal(
      json_string_value(json_object_get(with(json_object_get(doc, "nodes"), "type", "Conv"), "quantisation")),
      "products");
  assert_true(number(with(json_object_get(doc, "quantisation"), "class", "products"), "flops_pct", NULL) >
              50);
  assert_true(json_array_size(json_object_get(doc, "fusions")) > 0);
  json_array_foreach(json_object_get(doc, "fusions"), i, item)
      assert_true(number(item, "bytes_saved", NULL) > 0);
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "throughput"), "basis")),
                      "estimate");
  assert_true(number(doc, "throughput", "ceiling_fps") > 0);
  json_decref(doc);
  process_free(&p);
  p = RUN("inspect", tiny);
  assert_non_null(strstr(p.out, "memory-bound"));
  assert_non_null(strstr(p.out, "fusions: "));
  assert_non_null(strstr(p.out, "throughput (estimate)"));
  process_free(&p);
  /* Stages that were measured */
  p = RUN("profile", tiny, "-n", "3", "-o", "inspect.facts.json");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("inspect", tiny, "--profile", "inspect.facts.json", "--json");
  doc = process_json(&p);
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "throughput"), "basis")),
                      "measured");
  assert_true(number(doc, "throughput", "ceiling_fps") >= number(doc, "throughput", "serial_fps"));
  json_decref(doc);
  process_free(&p);
  expect_error(RUN("inspect", tiny, "--profile", tiny), 3, "not a profile");
}

static void test_verify_json(void **state) {
  (void)state;
  process p = RUN("verify", tiny, "-n", "3", "--json");
  json_t *doc = process_json(&p);
  assert_string_equal(json_string_value(json_object_get(doc, "verdict")), "same");
  assert_int_equal(p.code, 0);
  assert_int_equal(number(doc, "inputs", NULL), 3);
  number(doc, "max_abs", NULL);
  number(doc, "max_rel", NULL);
  assert_true(json_is_null(json_object_get(doc, "first_different_node")));
  json_decref(doc);
  process_free(&p);
}

static void test_verify_different(void **state) {
  (void)state;
  process p = RUN("zoo", "mobilenetv2", "-o", "other.onnx", "--width", "0.1", "--size", "32", "--seed", "2");
  assert_int_equal(p.code, 0);
  process_free(&p);
  /* at level 1, where every convolution is a step of its own and can be named */
  p = RUN("verify", tiny, "other.onnx", "-n", "3", "--level", "1", "--json");
  json_t *doc = process_json(&p);
  assert_int_equal(p.code, 1);
  assert_string_equal(json_string_value(json_object_get(doc, "verdict")), "different");
  assert_string_equal(json_string_value(json_object_get(doc, "first_different_node")), "Conv_3");
  json_decref(doc);
  process_free(&p);
}

static void test_optimize(void **state) {
  (void)state;
  process p = RUN("optimize", tiny, "-o", "opt.onnx", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_true(number(doc, "nodes_after", NULL) < number(doc, "nodes_before", NULL));
  assert_true(json_array_size(json_object_get(doc, "rewrites")) > 0);
  json_decref(doc);
  process_free(&p);
  p = RUN("optimize", tiny, "--explain");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, "near misses:"));
  process_free(&p);
  p = RUN("verify", tiny, "opt.onnx", "-n", "2");
  assert_int_equal(p.code, 0);
  process_free(&p);
}

static void test_profile_json(void **state) {
  (void)state;
  process p =
      RUN("profile", tiny, "-n", "5", "--json", "--trace", "t.json", "--csv", "l.csv", "--html", "p.html");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_true(number(doc, "wall_ms", NULL) > 0);
  number(doc, "closure", "residual_pct");
  assert_true(json_array_size(json_object_get(doc, "layers")) > 10);
  assert_true(json_array_size(json_object_get(doc, "spans")) > 10);
  const json_t *layer = json_array_get(json_object_get(doc, "layers"), 0);
  static const char *const fields[] = {"name",     "type",   "time_ms",   "pct",    "calls",
                                       "p50_ms",   "p95_ms", "cv",        "gflops", "gbs",
                                       "roof_pct", "bound",  "onnx_nodes"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!json_object_get(layer, fields[i])) fail_msg("layers[0].%s is missing", fields[i]);
  json_decref(doc);
  process_free(&p);
  assert_true(exists("t.json") && exists("l.csv") && exists("p.html"));
}

static double counter_of(const json_t *layer, const char *name) {
  return json_number_value(json_object_get(json_object_get(layer, "counters"), name));
}

static bool says_why(const json_t *doc, const char *what) {
  size_t i;
  json_t *note;
  json_array_foreach(json_object_get(doc, "not_measured"), i,
                     note) if (strcmp(json_string_value(json_object_get(note, "what")), what) ==
                               0) return strlen(json_string_value(json_object_get(note, "why"))) > 10;
  return false;
}

/* The narrow pass on the processor: counters of the chosen layers and of no other, or the reason why there
 * are none (virtual machines hide them). */
static void test_narrow_pass(void **state) {
  (void)state;
  setenv("HONE_FAULT", "imitated_counters", 1); /* in builds with faults */
  process p = RUN("profile", tiny, "-n", "4", "--filter", "Gemm", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p), *layer;
  size_t i;
  const bool counted = !says_why(doc, "hardware counters");
#ifdef HN_FAULTS
  assert_true(counted);
#endif
  assert_true(json_array_size(json_object_get(doc, "layers")) > 0);
  json_array_foreach(json_object_get(doc, "layers"), i, layer) if (counted && !says_why(doc, "instructions"))
      assert_true(counter_of(layer, "instructions") > 0);
  json_array_foreach(json_object_get(doc, "counters"), i, layer) {
    const json_t *step = json_object_get(layer, "step");
    if (!step || strcmp(json_string_value(json_object_get(layer, "name")), "instructions") != 0) continue;
    const json_t *of = json_array_get(json_object_get(doc, "steps"), (size_t)json_integer_value(step));
    assert_string_equal(json_string_value(json_object_get(of, "op_type")), "Gemm");
  }
#ifdef HN_FAULTS /* the imitation's proportions */
  layer = json_array_get(json_object_get(doc, "layers"), 0);
  assert_float_equal(counter_of(layer, "instructions_per_cycle"), 2, 1e-6);
  assert_float_equal(counter_of(layer, "llc_miss_pct"), 20, 1e-6);
  assert_float_equal(counter_of(layer, "branch_misses_per_1000"), 1000. / 6000, 1e-6);
  assert_true(counter_of(layer, "dram_gbs_estimate") > 0);
#endif
  json_decref(doc);
  process_free(&p);
  p = RUN("profile", tiny, "-n", "4", "--filter", "Gemm");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, counted ? "Hardware counters (" : "not measured: hardware counters ("));
  process_free(&p);
  unsetenv("HONE_FAULT");
}

static void test_compare(void **state) {
  (void)state;
  process p = RUN("profile", tiny, "-n", "6", "--level", "0", "-o", "p0.json");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("profile", tiny, "-n", "6", "-o", "p2.json");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("compare", "p0.json", "p2.json", "--json", "-o", "c.html");
  assert_int_equal(p.code, 0);
  assert_true(exists("c.html"));
  json_t *doc = process_json(&p);
  const json_t *c = json_object_get(doc, "comparison"), *rows = json_object_get(c, "rows");
  assert_true(json_array_size(rows) > 5);
  assert_true(json_integer_value(json_object_get(json_object_get(c, "counts"), "fused")) > 3);
  json_decref(doc);
  process_free(&p);
  /* What a finding tells to look at is found in the step that swallowed it; nothing found is no table. */
  p = RUN("report", "p2.json", "--filter", "Clip_*", "--json");
  assert_int_equal(p.code, 0);
  doc = process_json(&p);
  assert_true(json_array_size(json_object_get(doc, "layers")) > 5);
  json_decref(doc);
  process_free(&p);
  expect_error(RUN("report", "p2.json", "--filter", "No*"), 2, "no layer matches --filter");
  expect_error(RUN("compare", "p0.json", "missing.json"), 3, "missing.json");
  expect_error(RUN("compare", "p0.json"), 2, "compare");
}

static void test_loop(void **state) {
  (void)state;
  expect_error(RUN(tiny, "--shape", "N=1", "--max-seconds", "1e-9"), 6, "before the step 'load'");
  process p = RUN(tiny, "--inputs", "2");
  if (p.code != 0) fail_msg("exit %d: %s", p.code, p.err);
  assert_true(exists("hone-report/report.html") && exists("hone-report/report.json") &&
              exists("hone-report/trace.json") && exists("hone-report/optimized.onnx"));
  process_free(&p);
  /* What holds no record says what it is and how to get one. */
  static const char *const hint = "expected a record (facts v1) (hone profile MODEL -o FILE writes one)";
  expect_error(RUN("diagnose", "hone-report/report.json"), 3, hint);
  expect_error(RUN("compare", "hone-report/report.json", "hone-report/trace.json"), 3,
               "hone-report/report.json: a report of hone");
  expect_error(RUN("amdahl", "hone-report/trace.json", "--layers", "*", "-s", "2"), 3,
               "a trace that hone wrote");
  expect_error(RUN("diagnose", "hone-report/prediction.json"), 3, "findings of hone");
  p = RUN("bench", tiny, "-n", "2", "--json");
  write_text("bench.json", p.out);
  process_free(&p);
  expect_error(RUN("diagnose", "bench.json"), 3, "what hone bench prints");
  p = RUN(tiny, "--inputs", "2", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  static const char *const seeds[] = {
      "commit",         "model",        "batch",         "avg_latency_ms", "p95_latency_ms",
      "throughput_fps", "h2d_ms_ratio", "post_ms_ratio", "memory_peak_mb", "temperature_c_range",
      "profiling_date"};
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
    if (!json_object_get(doc, seeds[i])) fail_msg("report.json lacks %s", seeds[i]);
  process v = RUN("version", "--json");
  json_t *version = process_json(&v);
  const char *own = json_string_value(json_object_get(version, "commit")),
             *both = json_string_value(json_object_get(doc, "hone_version"));
  assert_non_null(both);
  assert_true(strncmp(both, hone_version(), strlen(hone_version())) == 0);
  assert_true(!own || strstr(both, own));
  json_decref(version);
  process_free(&v);
  json_decref(doc);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_inspect_json),     cmocka_unit_test(test_bench_json),
      cmocka_unit_test(test_inspect_analysis), cmocka_unit_test(test_verify_json),
      cmocka_unit_test(test_verify_different), cmocka_unit_test(test_optimize),
      cmocka_unit_test(test_profile_json),     cmocka_unit_test(test_narrow_pass),
      cmocka_unit_test(test_compare),          cmocka_unit_test(test_loop),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
