/* PyTorch's traces: small ones by hand, in which every figure is known, and the real ones in shared/. */
#include "importers/timeline_help.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define TRACE(events)                                                                                        \
  "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU X\"}], \"traceEvents\": "       \
  "[" events "]}"
#define X(cat, name, pid, tid, ts, dur, args)                                                                \
  "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"pid\": " pid ", \"tid\": " tid            \
  ", \"ts\": " ts ", \"dur\": " dur ", \"args\": {" args "}}"

/* Events stand one a line. */
/* clang-format off */
/* Two streams overlap, a copy hides behind a kernel, the host waits where nothing runs. */
static void overlap_is_swept(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "t.json",
      TRACE(
            X("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "0", "7", "1000", "100", "\"bytes\": 4000, \"correlation\": 1") ","
            X("kernel", "ampere_sgemm_x", "0", "7", "1100", "200", "\"correlation\": 2, \"stream\": 7, \"device\": 0, \"grid\": [4,2,1], \"block\": [128,1,1], \"registers per thread\": 90") ","
            X("kernel", "relu_kernel", "0", "8", "1200", "200", "\"correlation\": 3") ","
            X("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", "0", "9", "1350", "100", "\"bytes\": 800, \"correlation\": 4") ","
            X("cuda_runtime", "cudaDeviceSynchronize", "5", "5", "1300", "300", "\"correlation\": 9") ","
            X("kernel", "relu_kernel", "0", "8", "1700", "100", "\"correlation\": 5")));
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->iterations, 1);
  assert_float_equal(p->closure.wall_ms, 0.8, 1e-9);
  assert_float_equal(p->closure.layers_ms, 0.4, 1e-9); /* 1100-1400 and 1700-1800 */
  assert_float_equal(p->stages.h2d_ms, 0.1, 1e-9);
  assert_float_equal(p->stages.d2h_ms, 0.05, 1e-9);   /* what sticks out behind the kernels */
  assert_float_equal(p->closure.sync_ms, 0.15, 1e-9); /* 1450-1600 */
  assert_float_equal(p->closure.gaps_ms, 0.1, 1e-9);  /* 1600-1700 */
  assert_float_equal(counter(f, "device_0_busy_ms"), 0.55, 1e-9);
  const hone_span *copy = find_span(f, "Memcpy HtoD");
  assert_int_equal(copy->source_memory, HONE_MEMORY_PINNED);
  assert_int_equal(copy->target_memory, HONE_MEMORY_DEVICE);
  assert_int_equal(copy->bytes, 4000);
  assert_int_equal(find_span(f, "Memcpy DtoH")->target_memory, HONE_MEMORY_PAGEABLE);
  size_t n;
  const hone_launch *launches = hone_facts_launches(f, &n);
  const hone_span *gemm = find_span(f, "ampere_sgemm_x");
  assert_true(gemm->launch >= 1 && gemm->launch <= n);
  assert_int_equal(launches[gemm->launch - 1].grid_x, 4);
  assert_int_equal(launches[gemm->launch - 1].registers, 90);
  assert_string_equal(hone_facts_get_meta(f)->device, "GPU X");
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static const char *node_name(const hone_facts *f, const char *span) {
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(f, &n);
  const hone_step_fact *step = step_of_span(f, find_span(f, span));
  return step->node_count ? nodes[step->nodes[0]].name : NULL;
}

/* By "External id", by the correlated call inside of an operator, by a flow arrow; an External id that is
 * really a correlation number is not believed. */
static void kernels_find_their_operators(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "t.json",
      TRACE(
            X("cpu_op", "aten::conv2d", "5", "5", "100", "100", "\"External id\": 11") ","
            X("cpu_op", "aten::cudnn_convolution", "5", "5", "110", "80", "\"External id\": 12") ","
            X("cpu_op", "aten::relu_",
              "5", "5", "300", "50",
              "\"External id\": 40") ","
            X("cpu_op", "aten::addmm", "5", "5", "400", "50", "\"External id\": 50") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "150", "5", "\"correlation\": 30, \"External id\": 40") ",{\"ph\": \"s\", \"id\": 31, \"pid\": 5, \"tid\": 5, \"ts\": 420, \"cat\": \"ac2g\", \"name\": \"ac2g\"}," X("kernel", "k_by_call", "0", "7", "500", "10", "\"correlation\": 30, \"External id\": 40") ","
            X("kernel", "k_by_id", "0", "7", "510", "10", "\"correlation\": 77, \"External id\": 40") ","
            X("kernel", "k_by_flow", "0", "7", "520", "10", "\"correlation\": 31") ","
            X("kernel", "nchwToNhwcKernel", "0", "7", "530", "10", "\"correlation\": 30")));
  assert_string_equal(node_name(f, "k_by_call"), "aten::cudnn_convolution");
  assert_string_equal(step_of_span(f, find_span(f, "k_by_call"))->op_type, "Conv");
  assert_string_equal(node_name(f, "k_by_id"), "aten::relu_");
  assert_string_equal(node_name(f, "k_by_flow"), "aten::addmm");
  assert_string_equal(step_of_span(f, find_span(f, "k_by_flow"))->op_type, "Gemm");
  assert_int_equal(find_span(f, "nchwToNhwcKernel")->kind, HONE_SPAN_REFORMAT);
  hone_profile_destroy(sound_profile(f));
  hone_facts_destroy(f);
}

#define STEP(n, ts, dur) X("user_annotation", "ProfilerStep#" n, "5", "5", ts, dur, "")

static void steps_become_iterations(void **unused) {
  (void)unused;
  /* The host waits in each step: iterations are those of the host. */
  hone_facts *f = import_text(
      "t.json",
      TRACE(STEP("1", "0", "100") ","
            STEP("2", "100", "100") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "10", "5", "\"correlation\": 1") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "110", "5", "\"correlation\": 2") ","
            X("kernel", "k", "0", "7", "20", "60", "\"correlation\": 1") ","
            X("kernel", "k", "0", "7", "120", "30", "\"correlation\": 2")));
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->iterations, 2);
  assert_float_equal(p->walls_ms[0], 0.1, 1e-9);
  assert_float_equal(p->closure.layers_ms, 0.045, 1e-9);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  /* The host runs ahead: they are what the device did of each. */
  f = import_text(
      "t.json",
      TRACE(STEP("1", "0", "20") ","
            STEP("2", "20", "20") ","
            STEP("3", "40", "20") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "10", "5", "\"correlation\": 1") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "30", "5", "\"correlation\": 2") ","
            X("cuda_runtime", "cudaLaunchKernel", "5", "5", "50", "5", "\"correlation\": 3") ","
            X("kernel", "k", "0", "7", "20", "90", "\"correlation\": 1") ","
            X("kernel", "k", "0", "7", "120", "90", "\"correlation\": 2") ","
            X("kernel", "k", "0", "7", "220", "90", "\"correlation\": 3")));
  p = sound_profile(f);
  assert_int_equal(p->iterations, 3);
  assert_float_equal(p->walls_ms[0], 0.1, 1e-9); /* to the start of the next */
  assert_float_equal(p->walls_ms[2], 0.09, 1e-9);
  assert_float_equal(p->closure.layers_ms, 0.09, 1e-9);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void processors_alone(void **unused) {
  (void)unused;
  /* Nested operators: each instant belongs to the innermost; one inside itself is one. Decimals are exact. */
  hone_facts *f = import_text(
      "t.json",
      TRACE(STEP("9", "1212075529876.817", "100.183") ","
            X("cpu_op", "aten::linear", "5", "5", "1212075529880.000", "40.5", "\"External id\": 1") ","
            X("cpu_op", "aten::addmm", "5", "5", "1212075529890.000", "20.25", "\"External id\": 2") ","
            X("cpu_op", "aten::sum", "5", "5", "1212075529930", "30", "\"External id\": 3") ","
            X("cpu_op", "aten::sum", "5", "5", "1212075529935", "20", "\"External id\": 4") ","
            X("python_function", "main.py(3): f", "5", "5", "1212075529877", "90", "")));
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->iterations, 1);
  assert_float_equal(p->closure.wall_ms, 0.100183, 1e-12);
  assert_float_equal(p->closure.layers_ms, 0.0705, 1e-9);
  for (size_t i = 0; i < p->layer_count; i++) {
    if (strcmp(p->layers[i].name, "aten::linear") == 0)
      assert_float_equal(p->layers[i].time_ms, 0.02025, 1e-9);
    if (strcmp(p->layers[i].name, "aten::sum") == 0) assert_float_equal(p->layers[i].calls, 1, 1e-9);
  }
  assert_string_equal(hone_facts_get_meta(f)->backend, "cpu");
  assert_non_null(unmeasured(f, "Python functions"));
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* Kineto of 2021, AMD, and the profiler before Kineto. */
static void dialects(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "old.json",
      "{\"traceEvents\": [" X("Operator", "aten::add", "\"77\"", "\"77\"", "10", "9", "\"External id\": 2") ","
            X("Runtime", "cudaLaunchKernel", "\"77\"", "\"77\"", "12", "2", "\"correlation\": 8, \"external id\": 2") ","
            X("Kernel", "vectorized_add", "0", "\"stream 7\"", "30", "5", "\"correlation\": 8, \"External id\": \"2\"") ","
            X("Memcpy", "Memcpy HtoD (Pageable -> Device)", "0", "\"stream 7\"", "20", "4", "\"bytes\": 64, \"memory bandwidth (GB/s)\": inf") "]}");
  assert_float_equal(span_ms(f, HONE_SPAN_KERNEL, true), 0.005, 1e-9);
  assert_float_equal(span_ms(f, HONE_SPAN_COPY_H2D, true), 0.004, 1e-9);
  assert_string_equal(node_name(f, "vectorized_add"), "aten::add");
  assert_string_equal(hone_facts_lane_name(f, find_span(f, "vectorized_add")->lane), "GPU 0 stream 7");
  hone_facts_destroy(f);

  f = import_text(
      "amd.json",
      TRACE(X("cuda_runtime", "hipLaunchKernel", "5", "5", "10", "5", "\"correlation\": 1") ","
            X("kernel", "Cijk_Alik_Bljk_HHS", "2", "0", "20", "50", "\"correlation\": 1, \"device\": 2, \"stream\": 0") ","
            X("gpu_memcpy", "CopyDeviceToHost", "2", "0", "80", "7", "\"correlation\": 2")));
  assert_string_equal(hone_facts_get_meta(f)->backend, "rocm");
  assert_string_equal(step_of_span(f, find_span(f, "Cijk"))->op_type, "MatMul");
  assert_float_equal(span_ms(f, HONE_SPAN_COPY_D2H, true), 0.007, 1e-9);
  hone_facts_destroy(f);

  f = import_text("2020.json", "[{\"name\": \"conv2d\", \"ph\": \"X\", \"ts\": 1.5, \"dur\": 10.0, \"tid\": 1, \"pid\": \"CPU functions\", \"args\": {}},{\"name\": \"k\", \"ph\": \"X\", \"ts\": 5.0, \"dur\": 2.5, \"tid\": 0, \"pid\": \"CUDA functions\", \"args\": {}}]");
  assert_float_equal(span_ms(f, HONE_SPAN_KERNEL, true), 0.0025, 1e-9);
  hone_facts_destroy(f);
}

#define LEGACY(name, ts, dur)                                                                                \
  "{\"name\": \"" name "\", \"ph\": \"X\", \"ts\": " ts ", \"dur\": " dur                                    \
  ", \"tid\": 1, \"pid\": \"CPU functions\", \"args\": {}}"

/* torch.autograd.profiler without Kineto: ranges look like operators. */
static void before_kineto(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "old.json",
      "[" LEGACY("iteration 0", "546", "100") ","
      LEGACY("aten::conv2d", "556", "60") ","
      LEGACY(
          "aten::mkldnn_convolution", "560",
          "50") ","
      LEGACY("iteration 1", "700", "80") ","
      LEGACY("aten::conv2d", "710", "40") "]");
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->iterations, 2);
  assert_float_equal(p->closure.wall_ms, 0.09, 1e-9);
  assert_float_equal(p->closure.layers_ms, 0.05, 1e-9);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void damaged(void **unused) {
  (void)unused;
  hone_error e = refuse_text(
      "cut.json", "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"na",
      HONE_ERROR_INPUT);
  assert_non_null(strstr(e.where, "cut.json: offset"));
  refuse_text("empty.json", TRACE(""), HONE_ERROR_INPUT);
  refuse_text("type.json", "{\"schemaVersion\": 1, \"traceEvents\": [}", HONE_ERROR_INPUT);
  /* Events without usable times are counted, the others stay. */
  hone_facts *f = import_text(
      "t.json", TRACE(X("kernel", "a", "0", "7", "1", "-5", "") ","
            X("kernel", "b", "0", "7", "NaN", "5",
                    "") ", 7, {}," X("kernel", "c", "{}", "[]", "10", "5", "\"correlation\": -1, \"grid\": 3") ","
            X("kernel", "d", "0", "7", "1e30", "5", "")));
  assert_float_equal(span_ms(f, HONE_SPAN_KERNEL, true), 0.005, 1e-9);
  assert_non_null(strstr(unmeasured(f, "damaged events"), "5 events"));
  hone_facts_destroy(f);
}

/* ---- the samples, against sums by another reader ---- */

static char *sample_path(const char *name, char *path, size_t size) {
  const char *shared = getenv("HONE_SHARED");
  snprintf(path, size, "%s/cases/profiles/pytorch/%s", shared ? shared : "../shared", name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fclose(file);
  return path;
}

static json_t *load(const char *path) {
  gzFile z = gzopen(path, "rb");
  assert_non_null(z);
  static char text[8 << 20];
  int n = gzread(z, text, sizeof text);
  gzclose(z);
  assert_true(n > 0 && n < (int)sizeof text);
  json_error_t error;
  json_t *root = json_loadb(text, (size_t)n, 0, &error);
  if (!root) fail_msg("%s", error.text);
  return root;
}

static double sum_of(json_t *root, const char *cat, const char *part) {
  size_t i;
  json_t *event;
  double us = 0;
  json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
    const char *c = json_string_value(json_object_get(event, "cat"));
    const char *name = json_string_value(json_object_get(event, "name"));
    if (c && strcmp(c, cat) == 0 && (!part || strstr(name, part)))
      us += json_number_value(json_object_get(event, "dur"));
  }
  return us / 1e3;
}

static void samples_add_up(void **unused) {
  (void)unused;
  char path[512];
  const char *paths[1] = {sample_path("kineto_alexnet.json.gz", path, sizeof path)};
  if (!paths[0]) skip(); /* no shared samples here */
  hone_facts *f = NULL;
  hone_error error = {0};
  assert_int_equal(hone_import_files(paths, 1, NULL, &f, &error), HONE_OK);
  json_t *root = load(paths[0]);
  double work = span_ms(f, HONE_SPAN_KERNEL, true) + span_ms(f, HONE_SPAN_REFORMAT, true);
  assert_float_equal(work, sum_of(root, "kernel", NULL), 1e-6);
  assert_float_equal(span_ms(f, HONE_SPAN_COPY_H2D, true), sum_of(root, "gpu_memcpy", "HtoD"), 1e-6);
  assert_float_equal(span_ms(f, HONE_SPAN_COPY, true), sum_of(root, "gpu_memset", NULL), 1e-6);
  json_decref(root);
  hone_profile *p = sound_profile(f);
  assert_float_equal(p->closure.imbalance_ms, 0, 1e-6);
  /* Every convolution kernel is traced to its operator. */
  assert_string_equal(node_name(f, "cudnn_ampere_scudnn_128x64_relu_xregs"), "aten::cudnn_convolution");
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  paths[0] = sample_path("kineto_cpu_only.json.gz", path, sizeof path);
  assert_int_equal(hone_import_files(paths, 1, NULL, &f, &error), HONE_OK);
  p = sound_profile(f);
  assert_int_equal(p->iterations, 1); /* ProfilerStep#551 */
  assert_float_equal(p->closure.wall_ms, 210.109162, 1e-6);
  root = load(paths[0]);
  double all = span_ms(f, HONE_SPAN_KERNEL, true) + span_ms(f, HONE_SPAN_KERNEL, false);
  assert_float_equal(all, sum_of(root, "cpu_op", NULL), 1e-6);
  json_decref(root);
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  paths[0] = sample_path("kineto_cupti_counters.json.gz", path, sizeof path);
  assert_int_equal(hone_import_files(paths, 1, NULL, &f, &error), HONE_OK);
  root = load(paths[0]);
  size_t i;
  json_t *event;
  const char *metric = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
  double sum = 0;
  json_array_foreach(json_object_get(root, "traceEvents"), i, event) sum +=
      json_number_value(json_object_get(json_object_get(event, "args"), metric));
  assert_true(sum > 0);
  assert_float_equal(counter(f, metric), sum, 1e-3);
  assert_non_null(unmeasured(f, "kernels"));
  json_decref(root);
  hone_profile_destroy(sound_profile(f));
  hone_facts_destroy(f);
}

/* clang-format on */

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overlap_is_swept),
      cmocka_unit_test(kernels_find_their_operators),
      cmocka_unit_test(steps_become_iterations),
      cmocka_unit_test(processors_alone),
      cmocka_unit_test(dialects),
      cmocka_unit_test(before_kineto),
      cmocka_unit_test(damaged),
      cmocka_unit_test(samples_add_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
