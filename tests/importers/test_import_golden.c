/* Facts of small files in every dialect against the stored ones; every truncation of each is one clear error.
 * HONE_WRITE_GOLDEN=1 writes the stored ones anew: read the difference before committing it. */
#include <hone/hone.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DATA "tests/importers/data/"
#define GOLDEN "tests/importers/golden/"

static const struct {
  const char *name;
  const char *files[4];
} cases[] = {
    {"trtexec_joined", {"trtexec/profile.json", "trtexec/times_old.json", "trtexec/layers.json"}},
    {"trtexec_other_order", {"trtexec/layers.json", "trtexec/profile.json"}},
    {"trtexec_11", {"trtexec/profile_11.json", "trtexec/layers_11.json", "trtexec/times.json"}},
    {"trtexec_names", {"trtexec/profile_old.json", "trtexec/layers_names.json"}},
    {"trtexec_times", {"trtexec/times_old.json"}},
    {"trtexec_untimed", {"trtexec/layers.json"}},
    {"onnxruntime_2019", {"onnxruntime/cpu_2019.json"}},
    {"onnxruntime_cpu", {"onnxruntime/cpu_new.json"}},
    {"onnxruntime_kernels", {"onnxruntime/cuda_kernels.json"}},
    {"onnxruntime_launches", {"onnxruntime/cuda_launches.json"}},
    {"ascend_op_summary",
     {"ascend/op_summary_0_1.csv", "ascend/fusion_op_0_1.csv", "ascend/api_statistic_0.csv"}},
    {"ascend_op_statistic", {"ascend/op_statistic_0_1.csv"}},
    {"ascend_api_statistic", {"ascend/api_statistic_0.csv"}},
    {"ascend_task_time", {"ascend/task_time_0_1.csv"}},
    {"ascend_kernel_details", {"ascend/kernel_details.csv"}},
    {"ascend_trace", {"ascend/msprof_1.json"}},
    {"pytorch_gpu", {"pytorch/gpu.json"}},
    {"pytorch_cpu", {"pytorch/cpu.json"}},
    {"pytorch_amd_2021", {"pytorch/amd_2021.json"}},
    {"nsys_trace", {"nsys/trace.sqlite"}},
    {"openvino_csv", {"openvino/benchmark_detailed_counters_report.csv", "openvino/benchmark_report.csv"}},
    {"openvino_json", {"openvino/benchmark_average_counters_report.json", "openvino/benchmark_report.json"}},
    {"openvino_2026_csv", {"openvino/v2026_average.csv", "openvino/v2026_report.csv"}},
    {"openvino_2026_json", {"openvino/v2026_detailed.json", "openvino/v2026_report.json"}},
    {"onednn_v2", {"onednn/v2.txt"}},
    {"onednn_torch", {"onednn/torch_v2.txt"}},
    {"onednn_openvino", {"onednn/openvino_v3.txt"}},
    {"onednn_v3_stamps", {"onednn/v3_stamps.txt"}},
    {"onednn_mkldnn", {"onednn/mkldnn.txt"}},
    {"ncu_raw", {"ncu/raw.csv"}},
    {"ncu_decimal_comma", {"ncu/raw_decimal_comma.csv"}},
    {"ncu_details", {"ncu/details.csv"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static size_t paths_of(size_t i, char paths[4][256], const char *list[4]) {
  size_t n = 0;
  for (; n < 4 && cases[i].files[n]; n++) {
    snprintf(paths[n], sizeof paths[n], DATA "%s", cases[i].files[n]);
    list[n] = paths[n];
  }
  return n;
}

static char *file_text(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = malloc(1 << 20);
  *size = fread(text, 1, (1 << 20) - 1, f);
  text[*size] = 0;
  fclose(f);
  return text;
}

static void test_golden(void **unused) {
  (void)unused;
  for (size_t i = 0; i < CASES; i++) {
    char paths[4][256], golden[256];
    const char *list[4];
    hone_error error = {0};
    hone_facts *facts = NULL;
    hone_profile *profile = NULL;
    char *text = NULL;
    size_t length, n = paths_of(i, paths, list), size;
    if (hone_import_files(list, n, NULL, &facts, &error) != HONE_OK)
      fail_msg("%s: %s", cases[i].name, error.what);
    assert_int_equal(hone_facts_to_json(facts, &text, &length, &error), HONE_OK);
    snprintf(golden, sizeof golden, GOLDEN "%s.json", cases[i].name);
    if (getenv("HONE_WRITE_GOLDEN")) {
      FILE *f = fopen(golden, "wb");
      assert_non_null(f);
      assert_int_equal(fwrite(text, 1, length, f), length);
      fclose(f);
    }
    char *stored = file_text(golden, &size);
    if (!stored || size != length || memcmp(stored, text, size) != 0)
      fail_msg("%s differs from its stored facts", cases[i].name);
    /* What an importer makes can be read back and contradicts itself in nothing. */
    if (hone_profile_create(facts, NULL, &profile, &error) != HONE_OK)
      fail_msg("%s: %s", cases[i].name, error.what);
    if (profile->doubt) fail_msg("%s: %s", cases[i].name, profile->doubt);
    hone_profile_destroy(profile);
    hone_facts_destroy(facts);
    assert_int_equal(hone_facts_from_json(text, length, &facts, &error), HONE_OK);
    hone_facts_destroy(facts);
    free(stored);
    free(text);
  }
}

/* A file that ends anywhere is an error that names the file and the place, or (a table cut at a line's end) a
 * shorter record; never a crash. */
static void test_truncated(void **unused) {
  (void)unused;
  for (size_t i = 0; i < CASES; i++) {
    char path[256];
    size_t size, refused = 0;
    snprintf(path, sizeof path, DATA "%s", cases[i].files[0]);
    char *text = file_text(path, &size);
    assert_non_null(text);
    bool json = strstr(path, ".json") != NULL;
    if (strstr(path, ".sqlite")) { /* must lie in a file: test_nsys.c cuts one */
      free(text);
      continue;
    }
    char format[32];
    snprintf(format, sizeof format, "%.*s", (int)strcspn(cases[i].files[0], "/"), cases[i].files[0]);
    const hone_import_options options = {.format = format};
    const size_t step = size > 2000 ? 3 : 1;
    for (size_t n = 0; n < size - 3; n += step) {
      hone_facts *facts = NULL;
      hone_error error = {0};
      hone_status status = hone_import_memory("cut", text, n, &options, &facts, &error);
      refused += status != HONE_OK;
      if (json) assert_int_equal(status, HONE_ERROR_INPUT);
      if (status) {
        assert_true(error.what[0]);
        assert_non_null(strstr(error.where, "cut"));
        assert_true(!json || strstr(error.where, "offset") || n == 0);
      }
      hone_facts_destroy(facts);
    }
    assert_true(refused > 0);
    free(text);
  }
}

static void test_wrong(void **unused) {
  (void)unused;
  static const struct {
    const char *format, *text, *says;
  } wrong[] = {
      {"trtexec", "[{\"count\":2},{\"name\":\"a\"}]", "without time"},
      {"trtexec", "[{\"timeMs\":2}]", "without name"},
      {"trtexec", "[{\"name\":\"a\",\"timeMs\":-1}]", "negative"},
      {"trtexec", "[{\"name\":\"a\",\"timeMs\":nan,\"averageMs\":inf}]", "not finite"},
      {"trtexec", "[{\"computeMs\":1,\"startH2dMs\":1}]", "startComputeMs"},
      {"trtexec", "[5]", "no object"},
      {"trtexec", "{\"Layers\":[7]}", "without a name"},
      {"trtexec", "{\"Layers\":[],\"Bindings\":[]}", "no times"},
      {"trtexec", "{\"x\":1}", "trtexec"},
      {"onnxruntime", "[]", "no node"},
      {"onnxruntime", "[{\"cat\":\"Node\",\"name\":\"a_kernel_time\",\"ph\":\"X\"}]", "ts and dur"},
      {"onnxruntime", "[{\"cat\":\"Node\",\"name\":\"a_kernel_time\",\"ts\":5,\"dur\":-3,\"ph\":\"X\"}]",
       "ends before"},
      {"onnxruntime", "[3]", "no object"},
      {"ascend", "Op Name,OP Type,Task Duration(us)\nx,Conv2D,abc\n", "no number"},
      {"ascend", "Op Name,OP Type,Task Duration(us)\nx,Conv2D,-5\n", "negative"},
      {"ascend", "Op Name,OP Type,Task Duration(us)\n", "no task"},
      {"ascend", "a,b\n1,2\n", "none of msprof"},
      {"ascend", "OP Type,Count,Total Time(us)\nConv2D,1,x\n", "without"},
      {"ascend", "[{\"ph\":\"X\",\"name\":\"a\"}]", "time"},
      {"ascend", "[1]", "no object"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    hone_facts *facts = NULL;
    hone_error error = {0};
    const hone_import_options options = {.format = wrong[i].format};
    hone_status status =
        hone_import_memory("wrong", wrong[i].text, strlen(wrong[i].text), &options, &facts, &error);
    char line[2048];
    hone_error_format(&error, line, sizeof line);
    if (status != HONE_ERROR_INPUT || !strstr(line, wrong[i].says))
      fail_msg("%s: %d %s", wrong[i].text, status, line);
    hone_facts_destroy(facts);
  }
}

/* Columns in another order, other units, other spellings: found by name. */
static void test_columns(void **unused) {
  (void)unused;
  static const char *const tables[] = {
      "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nx,Conv2D,AI_CORE,100.5,7.25\n",
      "Task Duration(ms),OP Type,OP Name,Task Start Time(ms)\n0.00725,Conv2D,x,0.1005\n",
      "task_duration(ns);op_type;op_name;task_start_time(ns);more\n7250;Conv2D;x;100500;?\n",
      "Type\tName\tDuration(us)\tStart Time(us)\nConv2D\tx\t7.25\t100.5\n"};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    hone_facts *facts = NULL;
    hone_error error = {0};
    const hone_import_options options = {.format = "ascend"};
    if (hone_import_memory("t", tables[i], strlen(tables[i]), &options, &facts, &error) != HONE_OK)
      fail_msg("%s: %s", tables[i], error.what);
    size_t n, steps;
    const hone_span *s = hone_facts_spans(facts, &n);
    const hone_step_fact *step = hone_facts_steps(facts, &steps);
    assert_true(n == 1 && steps == 1);
    assert_int_equal(s->start_ns, 100500);
    assert_int_equal(s->end_ns, 107750);
    assert_string_equal(step->name, "x");
    assert_string_equal(step->op_type, "Conv");
    hone_facts_destroy(facts);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_truncated),
                                     cmocka_unit_test(test_wrong), cmocka_unit_test(test_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
