/* The command as its users see it: exit codes, one-line errors, JSON fields, files, interrupts. */
#include "temporary.h"
#include "cli/process.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>
#include <math.h>

static char folder[64];
static char tiny[160]; /* a model in the folder */

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})
#define INTERRUPT(ms, ...) process_run(folder, ms, (const char *const[]){__VA_ARGS__, NULL})

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-cli"))) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", tiny, "--width", "0.1", "--size", "32");
  int code = p.code;
  if (code) fprintf(stderr, "%s", p.err);
  process_free(&p);
  return code;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static void write_text(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static bool exists(const char *name) {
  char path[256];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return stat(path, &st) == 0;
}

/* No temporary file was left anywhere below the folder. */
static void assert_no_leftovers(void) {
  char command[160];
  snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*.tmp*')\"", folder);
  assert_int_equal(system(command), 0);
}

/* Exit code, and one line on standard error that starts as every error does and holds `words`. */
static void expect_error(process p, int code, const char *words) {
  const char *err = p.err, *busy = strstr(err, "while the peaks were measured");
  if (busy && busy < strchr(err, '\n')) err = strchr(err, '\n') + 1; /* true, and said before the error */
  if (p.code != code || strncmp(err, "hone: error: ", 13) != 0 || count_lines(err) != 1 ||
      !strstr(err, words))
    fail_msg("exit %d (wanted %d), '%s' (wanted '%s')", p.code, code, p.err, words);
  assert_string_equal(p.out, "");
  process_free(&p);
}

static void test_help(void **state) {
  (void)state;
  static const char *const commands[] = {"loop", "inspect", "run",      "profile", "bench",
                                         "tune", "verify",  "optimize", "device",  "zoo",
                                         "help", "version", "quantize"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    process a = RUN(commands[i], "--help"), b = RUN("help", commands[i]);
    assert_int_equal(a.code, 0);
    assert_non_null(strstr(a.out, "usage: hone "));
    assert_non_null(strstr(a.out, "--help"));
    assert_string_equal(a.out, b.out);
    process_free(&a);
    process_free(&b);
  }
  process p = RUN("help");
  assert_int_equal(p.code, 0);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) assert_non_null(strstr(p.out, commands[i]));
  process_free(&p);
}

static void test_one_is_no_plural(void **state) {
  (void)state;
  process p = RUN("bench", tiny, "-t", "1", "-n", "3");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, " on cpu, 1 thread, batch 1\n"));
  process_free(&p);
  p = RUN("bench", tiny, "-t", "2", "-n", "3");
  assert_non_null(strstr(p.out, " on cpu, 2 threads, batch 1\n"));
  process_free(&p);
}

static void test_usage_errors(void **state) {
  (void)state;
  expect_error(RUN("benhc", tiny), 2, "did you mean 'bench'?");
  expect_error(RUN("frobnicate"), 2, "unknown command 'frobnicate', and no file has that name");
  expect_error(RUN("mnist-cntk.onx"), 3, "mnist-cntk.onx");
  expect_error(RUN("models/mnist"), 3, "models/mnist");
  expect_error(RUN("--lang", "zh", "inspect", tiny), 2, "'inspect' is a command: options stand behind it");
  expect_error(RUN("--lang", "zh", "diagnose"), 2, "(hone diagnose FILE");
  expect_error(RUN("--max-seconds", "5"), 2, "'--max-seconds' is no command");
  expect_error(RUN("bench", tiny, "--thread", "2"), 2, "did you mean '--threads'?");
  expect_error(RUN("bench", tiny, "-t", "two"), 2, "--threads wants a whole number");
  expect_error(RUN("bench", tiny, "-t"), 2, "--threads wants a value");
  expect_error(RUN("bench", tiny, "--level", "4"), 2, "--level wants a whole number from 0 to 3");
  expect_error(RUN("bench", tiny, "-n", "0"), 2, "--runs wants a whole number from 1");
  expect_error(RUN("optimize", tiny, "-o", tiny), 2, "while it is the input");
  expect_error(RUN("diagnose", tiny), 3, "hone profile measures one");
  expect_error(RUN("bench", tiny, "--json=yes"), 2, "takes no value");
  expect_error(RUN("bench"), 2, "missing argument");
  expect_error(RUN("bench", tiny, "more"), 2, "unexpected argument 'more'");
  expect_error(RUN("run", tiny, "--precision", "f8"), 2,
               "--precision f8 is not available on device cpu; expected f32, bf16, fp16 or auto");
  expect_error(RUN("run", tiny, "--precision", "tf32"), 2, "not available on device cpu");
  expect_error(RUN("run", tiny, "--device", "tpu"), 2, "unknown device");
  expect_error(RUN("run", tiny, "--shape", "input"), 2, "--shape wants");
  expect_error(RUN("run", tiny, "--shape", "inputt=1x3x32x32"), 2, "did you mean 'input'?");
  expect_error(RUN("run", tiny, "--input", "x=a.npy"), 2, "no input 'x'");
  expect_error(RUN("zoo", "resnet5"), 2, "did you mean 'resnet50'?");
  expect_error(RUN("zoo", "resnet50"), 2, "-o");
  expect_error(RUN("zoo", "yolov3", "-o", "x.onnx", "--size", "33"), 2, "multiple of 32");
  expect_error(RUN("zoo", "resnet50", "-o", "x.onnx", "--boxes"), 2, "finds no boxes");
  expect_error(RUN("optimize", tiny), 2, "-o");
  expect_error(RUN("optimize", tiny, "--explain", "--passes", "fold_*,fuse_all"), 2,
               "no pass or fusion is called 'fuse_all'");
  expect_error(RUN("bench", tiny, "--level", "0", "--passes", "-epilog"), 2, "epilogue, chain, pointwise");
}

/* The file's bytes; the caller frees them. */
static char *slurp(const char *name, size_t *size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  char *data = malloc(*size);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, *size, f), *size);
  fclose(f);
  return data;
}

/* Shape of a model's first node of this type, "1x29x17x17". */
static void assert_first_shape(const char *model, const char *type, const char *shape) {
  process p = RUN("inspect", model, "--json");
  json_t *doc = process_json(&p), *node;
  size_t i;
  json_array_foreach(json_object_get(doc, "nodes"), i, node) {
    if (strcmp(json_string_value(json_object_get(node, "type")), type) != 0) continue;
    assert_string_equal(json_string_value(json_object_get(node, "shape")), shape);
    break;
  }
  assert_true(i < json_array_size(json_object_get(doc, "nodes")));
  json_decref(doc);
  process_free(&p);
}

/* Widths and sizes that the papers do not have: odd channel counts, odd maps, and still right answers. */
static void test_zoo_variants(void **state) {
  (void)state;
  static const struct {
    const char *name, *width, *size, *round, *type, *shape;
  } variants[] = {
      {"mobilenetv2", "0.9", "33", "1", "Conv", "1x29x17x17"},
      {"mobilenetv2", "0.9", "33", "8", "Conv", "1x32x17x17"},
      {"resnet50", "0.11", "49", "1", "Conv", "1x7x25x25"},
      {"yolov3", "0.09", "64", "1", "Conv", "1x3x64x64"},
      {"bert_base", "0.1", "7", "8", "MatMul", "1x7x64"},
  };
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    process p = RUN("zoo", variants[i].name, "-b", "1", "--width", variants[i].width, "--size",
                    variants[i].size, "--round", variants[i].round, "-o", "variant.onnx");
    if (p.code) fail_msg("%s: %s", variants[i].name, p.err);
    process_free(&p);
    assert_first_shape("variant.onnx", variants[i].type, variants[i].shape);
    p = RUN("verify", "variant.onnx", "-n", "1");
    if (p.code) fail_msg("%s: %s%s", variants[i].name, p.out, p.err);
    process_free(&p);
  }
  size_t size, again;
  char *first = slurp("variant.onnx", &size);
  process p = RUN("zoo", "bert_base", "-b", "1", "--width", "0.1", "--size", "7", "-o", "variant.onnx");
  process_free(&p);
  char *second = slurp("variant.onnx", &again);
  assert_int_equal(size, again);
  assert_memory_equal(first, second, size);
  free(first);
  free(second);
}

static void test_bad_input(void **state) {
  (void)state;
  write_text("page.onnx", "<!DOCTYPE html><html></html>");
  write_text("bad.npy", "\x93NUMPY garbage");
  write_text("bad.jpg", "\xff\xd8\xff\xe0 garbage");
  expect_error(RUN("inspect", "page.onnx"), 3, "page.onnx");
  expect_error(RUN("inspect", "missing.onnx"), 3, "missing.onnx");
  expect_error(RUN("missing.onnx"), 3, "missing.onnx");
  expect_error(RUN("run", tiny, "--input", "input=missing.npy"), 3, "missing.npy");
  expect_error(RUN("run", tiny, "--input", "input=bad.npy"), 3, "bad.npy");
  expect_error(RUN("run", tiny, "--input", "input=bad.jpg"), 3, "bad.jpg");
  expect_error(RUN("run", tiny, "--input", "input=page.onnx"), 3, "page.onnx");
  expect_error(RUN("run", tiny, "--labels", "missing.txt"), 3, "missing.txt");
}

static void test_other_exit_codes(void **state) {
  (void)state;
  expect_error(RUN("run", tiny, "--device", "cuda"), 4, "cuda");
  expect_error(RUN("demo", "merged-copies"), 4, "needs a GPU");
  expect_error(RUN("zoo", "mobilenetv2", "--width", "0.1", "-o", "/dev/full"), 6, "No space left");
  expect_error(RUN("zoo", "mobilenetv2", "--width", "0.1", "-o", "no/such/folder/m.onnx"), 6,
               "no/such/folder");
  expect_error(RUN("run", tiny, "--shape", "N=1", "--max-seconds", "0.0000001"), 6, "time budget");
  expect_error(RUN("profile", tiny, "-n", "2", "--shape", "N=1", "--csv", "/dev/full"), 6, "No space left");
  struct stat st;
  assert_int_equal(stat("/dev/full", &st), 0);
  assert_true(S_ISCHR(st.st_mode)); /* still the device */
  assert_no_leftovers();
}

static void test_full_stdout(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "'%s' inspect '%s' --json >/dev/full 2>/dev/null", HONE_BINARY, tiny);
  assert_int_equal(WEXITSTATUS(system(command)), 6);
}

static double number(const json_t *doc, const char *a, const char *b) {
  const json_t *v = json_object_get(doc, a);
  if (b) v = json_object_get(v, b);
  if (!json_is_number(v)) fail_msg("%s.%s is not a number", a, b ? b : "");
  return json_number_value(v);
}

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

/* What static analysis says beyond counting. */
static void test_inspect_analysis(void **state) {
  (void)state;
  process p = RUN("device");
  /* Peaks beside other processes may need more time than tests usually give them. */
  for (const char *const *seconds = (const char *const[]){"5", "30", NULL}; *seconds; seconds++) {
    process_free(&p);
    p = RUN("inspect", tiny, "--json");
    if (strstr(p.out, "ridge_flop_per_byte\": null") == NULL) break;
    setenv("HONE_ROOF_SECONDS", *seconds, 1);
  }
  setenv("HONE_ROOF_SECONDS", "1", 1);
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

/* A revision as git makes one, without git: HEAD, a ref in its own file or among the packed ones. */
static void make_repository(const char *name, const char *head, const char *ref, const char *value) {
  char path[256];
  static const char *const parts[] = {"", "/.git", "/.git/refs", "/.git/refs/heads", "/deep"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    snprintf(path, sizeof path, "%s/%s%s", folder, name, parts[i]);
    mkdir(path, 0777);
  }
  snprintf(path, sizeof path, "%s/.git/HEAD", name);
  write_text(path, head);
  snprintf(path, sizeof path, "%s/.git/%s", name, ref);
  write_text(path, value);
}

#define SHA1 "0123456789abcdef0123456789abcdef01234567"
#define SHA2 "89abcdef0123456789abcdef0123456789abcdef"

static void expect_commit(const char *at, const char *model, const char *want) {
  char where[256];
  snprintf(where, sizeof where, "%s/%s", folder, at);
  process p =
      process_run(where, 0, (const char *const[]){"bench", model, "-n", "1", "-w", "0", "--json", NULL});
  if (p.code != 0) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  const char *got = json_string_value(json_object_get(doc, "commit"));
  if (!json_object_get(doc, "commit") || (got != NULL) != (want != NULL) || (want && strcmp(got, want) != 0))
    fail_msg("in %s: commit %s, not %s", at, got ? got : "null", want ? want : "null");
  json_decref(doc);
  process_free(&p);
}

/* The commit of a report is the user's repository's: that of the working directory, else of the model. */
static void test_commit(void **state) {
  (void)state;
  char model[256], *sha = getenv("GITHUB_SHA"), *kept = sha ? strdup(sha) : NULL;
  unsetenv("GITHUB_SHA");
  make_repository("loose", "ref: refs/heads/main\n", "refs/heads/main", SHA1 "\n");
  make_repository("packed", "ref: refs/heads/v1\n", "packed-refs",
                  "# pack-refs with: peeled\n" SHA1 " refs/heads/v10\n" SHA2 " refs/heads/v1\n^" SHA1 "\n");
  make_repository("detached", SHA2 "\n", "refs/heads/main", SHA1 "\n");
  make_repository("empty", "ref: refs/heads/main\n", "refs/heads/other", SHA1 "\n");
  make_repository("escape", "ref: refs/../../secret\n", "refs/heads/main", SHA1 "\n");
  write_text("secret", SHA1 "\n");
  expect_commit("loose/deep", tiny, SHA1);
  expect_commit("packed", tiny, SHA2);
  expect_commit("detached", tiny, SHA2);
  expect_commit("empty", tiny, NULL);
  expect_commit("escape", tiny, NULL);
  expect_commit(".", tiny, NULL); /* outside of any */
  /* A work tree's own HEAD, the refs that it shares. */
  char path[256];
  snprintf(path, sizeof path, "%s/tree2", folder);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/loose/.git/worktrees", folder);
  mkdir(path, 0777);
  strcat(path, "/t");
  mkdir(path, 0777);
  write_text("loose/.git/worktrees/t/HEAD", "ref: refs/heads/side\n");
  write_text("loose/.git/worktrees/t/commondir", "../..\n");
  write_text("loose/.git/refs/heads/side", SHA2 "\n");
  write_text("tree2/.git", "gitdir: ../loose/.git/worktrees/t\n");
  expect_commit("tree2", tiny, SHA2);
  /* From outside, the repository of the model counts. */
  snprintf(model, sizeof model, "%s/loose/deep/m.onnx", folder);
  process p = RUN("zoo", "many_inputs", "-o", model);
  assert_int_equal(p.code, 0);
  process_free(&p);
  expect_commit(".", "loose/deep/m.onnx", SHA1);
  expect_commit("detached", model, SHA2);
  setenv("GITHUB_SHA", "fromci", 1);
  expect_commit("loose", tiny, "fromci");
  unsetenv("GITHUB_SHA");
  if (kept) setenv("GITHUB_SHA", kept, 1);
  free(kept);
}

static void test_run_files(void **state) {
  (void)state;
  process p = RUN("run", tiny, "--output-dir", "outs/a", "--seed", "5", "--level", "1");
  assert_int_equal(p.code, 0);
  process_free(&p);
  assert_true(exists("outs/a/output.npy") && exists("outs/a/outputs.json"));
  p = RUN("zoo", "yolov3", "-o", "yolo.onnx", "--width", "0.05", "--size", "32");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("run", "yolo.onnx", "--output-dir", "outs/b", "--json");
  assert_int_equal(p.code, 0);
  assert_true(exists("outs/b/head0.npy") && exists("outs/b/head1.npy") && exists("outs/b/head2.npy"));
  json_t *doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "outputs")), 3);
  json_decref(doc);
  process_free(&p);
  /* the same seed gives the same answer, whatever the threads (from level 2 on they may choose other tactics)
   */
  p = RUN("run", tiny, "--output-dir", "outs/c", "--seed", "5", "-t", "1", "--level", "1");
  assert_int_equal(p.code, 0);
  process_free(&p);
  char command[200];
  snprintf(command, sizeof command, "cmp '%s/outs/a/output.npy' '%s/outs/c/output.npy'", folder, folder);
  assert_int_equal(system(command), 0);
  /* an output fed back as an input of the right shape */
  expect_error(RUN("run", tiny, "--input", "input=outs/a/output.npy"), 3, "shape");
}

static void test_symbols(void **state) {
  (void)state;
  process p = RUN("inspect", tiny, "--shape", "N=4", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  const json_t *input = json_array_get(json_object_get(doc, "inputs"), 0);
  assert_int_equal(json_integer_value(json_array_get(json_object_get(input, "shape"), 0)), 4);
  json_decref(doc);
  process_free(&p);
}

static void test_labels(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s/labels.txt", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 1001; i++) fprintf(f, "class %d\n", i - 1); /* the first is the background */
  fclose(f);
  process p = RUN("run", tiny, "--labels", "labels.txt", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  const json_t *row = json_array_get(json_object_get(doc, "top5"), 0);
  assert_int_equal(json_array_size(row), 5);
  char want[32];
  snprintf(want, sizeof want, "class %lld",
           (long long)json_integer_value(json_object_get(json_array_get(row, 0), "class")));
  assert_string_equal(json_string_value(json_object_get(json_array_get(row, 0), "label")), want);
  json_decref(doc);
  process_free(&p);
}

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
  for (int ms = 1500;; ms *= 3) { /* on a slow machine the model may still be loading then */
    p = INTERRUPT(ms, "tune", "zoo:yolov3", "--cache", "cut.txt", "--json");
    assert_int_equal(p.code, 130);
    if (p.out[0] || ms > 30000) break;
    process_free(&p);
  }
  doc = process_json(&p);
  assert_true(json_is_true(json_object_get(doc, "interrupted")));
  /* Either steps are left, or what follows the measuring was not reached. */
  assert_true(number(doc, "skipped", NULL) > 0 || json_is_null(json_object_get(doc, "whole")));
  if (number(doc, "measured", NULL) > 0) assert_true(exists("cut.txt"));
  json_decref(doc);
  process_free(&p);
  assert_no_leftovers();
}

/* Peaks measured beside busy processes are called what they are, and not kept. */
static void test_busy_device(void **state) {
  (void)state;
  pid_t others[2];
  for (int i = 0; i < 2; i++) {
    others[i] = fork();
    if (others[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* an assertion that fails leaves nobody behind */
      for (;;) continue;
    }
  }
  /* What other tests measured while the machine was quiet is not there. */
  char other[128];
  snprintf(other, sizeof other, "%s/no-cache", folder);
  setenv("XDG_CACHE_HOME", other, 1);
  unsetenv("HONE_ROOF_SECONDS"); /* whole windows are needed to tell how busy it was */
  unsetenv("HONE_ROOF_QUICK");
  process p = RUN("device", "--threads", "1", "--again", "--json");
  setenv("HONE_ROOF_SECONDS", "1", 1);
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) { /* else two busy ones are no tenth */
    char command[300];
    snprintf(command, sizeof command, "! grep -q '| 1 threads' '%s'/hone/roofs-*.txt 2>/dev/null", other);
    assert_int_equal(system(command), 0);
  }
  /* Ctrl-C ends the measuring of peaks that follows a profile's runs, too. */
  snprintf(other, sizeof other, "%s/no-peaks", folder);
  setenv("XDG_CACHE_HOME", other, 1);
  process stopped = INTERRUPT(500, "profile", tiny, "--shape", "N=1", "-n", "1", "--threads", "1");
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("HONE_ROOF_QUICK", "1", 1);
  assert_int_equal(stopped.code, 130);
  process_free(&stopped);
  process waited = RUN("bench", tiny, "--shape", "N=1", "-n", "3", "--quiet-wait", "1.2");
  assert_int_equal(waited.code, 0);
  assert_non_null(strstr(waited.err, "others "));
  stopped = INTERRUPT(1500, "bench", tiny, "--shape", "N=1", "-n", "3", "--quiet-wait", "600");
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) {
    assert_non_null(strstr(waited.err, "going on beside them"));
    assert_int_equal(stopped.code, 130);
  }
  process_free(&waited);
  process_free(&stopped);
  for (int i = 0; i < 2; i++) {
    kill(others[i], SIGKILL);
    waitpid(others[i], NULL, 0);
  }
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) {
    assert_true(json_is_false(json_object_get(doc, "quiet")));
    assert_true(json_real_value(json_object_get(doc, "others_share")) > 0.1);
    assert_non_null(strstr(p.err, "others were busy in all windows"));
  }
  json_decref(doc);
  process_free(&p);
}

static void test_device_and_version(void **state) {
  (void)state;
  process p = RUN("device", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "roofs")), 8);
  json_decref(doc);
  process_free(&p);
  p = RUN("version", "--json");
  doc = process_json(&p);
  assert_string_equal(json_string_value(json_object_get(doc, "version")), HONE_VERSION_STRING);
  json_decref(doc);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_help),
      cmocka_unit_test(test_usage_errors),
      cmocka_unit_test(test_one_is_no_plural),
      cmocka_unit_test(test_zoo_variants),
      cmocka_unit_test(test_bad_input),
      cmocka_unit_test(test_other_exit_codes),
      cmocka_unit_test(test_full_stdout),
      cmocka_unit_test(test_inspect_json),
      cmocka_unit_test(test_bench_json),
      cmocka_unit_test(test_inspect_analysis),
      cmocka_unit_test(test_verify_json),
      cmocka_unit_test(test_verify_different),
      cmocka_unit_test(test_optimize),
      cmocka_unit_test(test_profile_json),
      cmocka_unit_test(test_narrow_pass),
      cmocka_unit_test(test_compare),
      cmocka_unit_test(test_loop),
      cmocka_unit_test(test_commit),
      cmocka_unit_test(test_run_files),
      cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_labels),
      cmocka_unit_test(test_interrupt),
      cmocka_unit_test(test_tune),
      cmocka_unit_test(test_busy_device),
      cmocka_unit_test(test_device_and_version),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
