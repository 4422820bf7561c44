/* Tools that tell how long layers took: Nsight Compute, OpenVINO's benchmark_app, oneDNN's log. */
#include "importers/timeline_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const hone_layer *layer(const hone_profile *p, const char *name) {
  for (size_t i = 0; i < p->layer_count; i++)
    if (strcmp(p->layers[i].name, name) == 0) return &p->layers[i];
  fail_msg("no layer '%s'", name);
  return NULL;
}

static double step_counter(const hone_facts *f, int32_t step, const char *name) {
  size_t n;
  const hone_counter *c = hone_facts_counters(f, &n);
  for (size_t i = 0; i < n; i++)
    if (c[i].step == step && strcmp(c[i].name, name) == 0) return c[i].value;
  return -1;
}

static hone_status keep(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  *(char **)user = strndup(data, length);
  return HONE_OK;
}

/* Owned by the caller. */
static char *report(const hone_profile *p, hone_report_format format) {
  char *text = NULL;
  hone_error e = {0};
  assert_int_equal(
      hone_report_write(&(hone_report_input){.baseline = p, .width = 200}, format, keep, &text, &e), HONE_OK);
  return text;
}

/* ---- Nsight Compute ---- */

#define RAW                                                                                                  \
  "==PROF== Connected to process 1234 (/usr/bin/app)\nhello, this is no ID\n==PROF== Profiling \"k\": "      \
  "0%....100% - 8 passes\n"                                                                                  \
  "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\","           \
  "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__compute_memory_throughput.avg.pct_of_peak_"   \
  "sustained_elapsed\","                                                                                     \
  "\"dram__bytes.sum\"\n"

static void raw_page(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "k.csv",
      RAW "\"\",\"\",\"\",\"\",\"\",\"usecond\",\"%\",\"%\",\"Mbyte\"\n"
          "\"0\",\"1\",\"sgemm\",\"(128, 1, 1)\",\"(64, 8, 1)\",\"1,200.50\",\"85.0\",\"30.0\",\"12.5\"\n"
          "\"1\",\"1\",\"void relu<float>(float*, int)\",\"(256, 1, 1)\",\"(9, 1, "
          "1)\",\"20.25\",\"12\",\"88.5\",\"80\"\n"
          "\"2\",\"1\",\"sgemm\",\"(128, 1, 1)\",\"(64, 8, 1)\",\"3,600\",\"65.0\",\"30.0\",\"12.5\"\n"
          "\"3\",\"1\",\"sgemm\",\"(128, 1, 1)\",\"(1, 1, 1)\",\"2.5\",\"1.0\",\"2.0\",\"n/a\"\n"
          "\"4\",\"1\",\"between\",\"(128, 1, 1)\",\"(1, 1, 1)\",\"10\",\"50\",\"45\",\"n/a\"\n");
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->layer_count, 4);
  const hone_layer *gemm = layer(p, "sgemm"), *relu = layer(p, "void relu<float>(float*, int)"),
                   *small = layer(p, "sgemm (1, 1, 1) x (128, 1, 1)");
  assert_float_equal(gemm->time_ms, 4.8005, 1e-9);
  assert_float_equal(gemm->calls, 2, 1e-9);
  assert_float_equal(p->closure.wall_ms, 4.8005 + 0.02025 + 0.0025 + 0.01, 1e-9);
  /* 60/40: weighted with time, 70 % of compute */
  assert_float_equal(step_counter(f, gemm->step, "compute_pct_of_peak"), (85 * 1200.5 + 65 * 3600) / 4800.5,
                     1e-6);
  assert_int_equal(gemm->bound, HONE_LIMIT_COMPUTE);
  assert_int_equal(relu->bound, HONE_LIMIT_MEMORY);
  assert_int_equal(small->bound, HONE_LIMIT_LATENCY);
  assert_int_equal(layer(p, "between")->bound, HONE_LIMIT_COMPUTE);
  assert_true(layer(p, "between")->bound_confidence < 0.5);
  size_t n;
  assert_int_equal(hone_facts_steps(f, &n)[relu->step].bytes, 80000000);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  f = import_text("k.csv",
                  RAW "\"0\",\"1\",\"k\",\"\",\"\",\"2500\",\"1\",\"1\",\"5\"\n"); /* old: no row of units */
  p = sound_profile(f);
  assert_float_equal(p->closure.wall_ms, 0.0025, 1e-12);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

#define ROW(id, kernel, section, metric, unit, value)                                                        \
  "\"" id "\",\"1\",\"" kernel "\",\"(32, 1, 1)\",\"(2, 1, 1)\",\"" section "\",\"" metric "\",\"" unit      \
  "\",\"" value "\"\n"

static void details_page(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "d.csv", "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Section Name\",\"Metric "
               "Name\",\"Metric Unit\",\"Metric Value\"\n" ROW("0", "k", "GPU Speed Of Light Throughput",
                                                               "Compute (SM) Throughput", "%", "72.5")
                   ROW("0", "k", "GPU Speed Of Light Throughput", "Memory Throughput", "%", "20.5")
                       ROW("0", "k", "GPU Speed Of Light Throughput", "Duration", "usecond", "1,000.5")
                           ROW("0", "k", "Memory Workload Analysis", "Memory Throughput", "Gbyte/second",
                               "432.1") ROW("0", "k", "Occupancy", "Achieved Occupancy", "%", "47.0")
                               ROW("1", "k", "GPU Speed Of Light Throughput", "Duration", "msecond", "1"));
  hone_profile *p = sound_profile(f);
  const hone_layer *k = layer(p, "k");
  assert_float_equal(k->time_ms, 2.0005, 1e-9);
  assert_float_equal(step_counter(f, k->step, "memory_pct_of_peak"), 20.5, 1e-9);
  assert_float_equal(step_counter(f, k->step, "occupancy_pct"), 47, 1e-9);
  assert_int_equal(k->bound, HONE_LIMIT_COMPUTE);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void damaged_kernels(void **unused) {
  (void)unused;
  hone_error e = refuse_text(
      "k.csv", "\"ID\",\"Process ID\",\"Kernel Name\",\"a__b\"\n\"0\",\"1\",\"k\",\"3\"\n", HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "durations"));
  assert_non_null(strstr(e.where, "k.csv: line"));
  refuse_text("k.csv", RAW, HONE_ERROR_INPUT);
  refuse_text("k.csv", RAW "\"0\",\"1\",\"k", HONE_ERROR_INPUT);
  refuse_text("k.csv", RAW "\"0\",\"1\",\"k\",\"\",\"\",\"n/a\"\n", HONE_ERROR_INPUT);
}

/* Hit rates, instruction throughput and branches reach the table, the CSV and the JSON of a report. */
static void counters_in_reports(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "k.csv", "\"ID\",\"Process ID\",\"Kernel Name\",\"gpu__time_duration.sum\","
               "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\","
               "\"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\","
               "\"lts__t_sector_hit_rate.pct\",\"l1tex__t_sector_hit_rate.pct\","
               "\"sm__inst_executed.avg.per_cycle_elapsed\","
               "\"smsp__sass_average_branch_targets_threads_uniform.pct\"\n"
               "\"\",\"\",\"\",\"usecond\",\"%\",\"%\",\"%\",\"%\",\"inst/cycle\",\"%\"\n"
               "\"0\",\"1\",\"walk\",\"100\",\"22\",\"81\",\"63.25\",\"17.5\",\"1.37\",\"93.75\"\n");
  hone_profile *p = sound_profile(f);
  char *text = report(p, HONE_REPORT_TEXT), *csv = report(p, HONE_REPORT_CSV),
       *json = report(p, HONE_REPORT_JSON), *page = report(p, HONE_REPORT_HTML);
  const char *in_text[] = {"Hardware counters (1)", "L2 hit %", "63", "L1 hit %", "18", "instr/cycle", "1.37",
                           "branch eff. %",         "94"};
  for (size_t i = 0; i < sizeof in_text / sizeof *in_text; i++) assert_non_null(strstr(text, in_text[i]));
  assert_non_null(strstr(csv, ",compute_pct_of_peak,memory_pct_of_peak,l2_hit_pct,l1_hit_pct,"
                              "instructions_per_cycle,branch_uniform_pct\r\n"));
  assert_non_null(strstr(csv, ",22.0000,81.0000,63.2500,17.5000,1.3700,93.7500\r\n"));
  for (int i = 0; i < 2; i++) {
    const char *in = i ? page : json;
    assert_non_null(strstr(in, "\"bound\":\"memory\""));
    assert_non_null(strstr(in, "\"bound_source\":\"counters\""));
    assert_non_null(strstr(in, "\"l2_hit_pct\":63.25"));
    assert_non_null(strstr(in, "\"branch_uniform_pct\":93.75"));
  }
  free(text), free(csv), free(json), free(page);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* ---- Ascend ---- */

#define SUMMARY(ratios)                                                                                      \
  "Device_id,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time(us),Task "        \
  "Duration(us)," ratios "\n"
#define OP(name, type, start, us, ratios) "0,1,1,1,1," name "," type ",AI_CORE," start "," us "," ratios "\n"

/* The busiest pipe of each kind stands for it, by the same limits as a GPU's counters. */
static void ascend_bounds(void **unused) {
  (void)unused;
  hone_facts *f = import_text(
      "op_summary_1.csv",
      SUMMARY("aic_mac_ratio,aic_mte1_ratio,aic_mte2_ratio,aiv_vec_ratio,aiv_mte2_ratio,aiv_mte3_ratio")
          OP("mul", "MatMulV2", "1000", "50", "0.82,0.31,0.4,0,0,0")
              OP("add", "Add", "1050", "40", "0,0,0,0.25,0.7,0.91")
                  OP("small", "Softmax", "1090", "30", "0,0,0,0.2,0.3,0.1")
                      OP("between", "Conv2D", "1120", "20", "0.5,0.45,0.2,0,0,0")
                          OP("unknown", "TopK", "1140", "20", "N/A,N/A,N/A,N/A,N/A,N/A"));
  hone_profile *p = sound_profile(f);
  const hone_layer *mul = layer(p, "mul"), *add = layer(p, "add"), *between = layer(p, "between");
  assert_int_equal(mul->bound, HONE_LIMIT_COMPUTE);
  assert_true(mul->by_counters && mul->bound_confidence > 0.5);
  assert_float_equal(mul->compute_pct, 82, 1e-9);
  assert_float_equal(mul->memory_pct, 40, 1e-9);
  assert_int_equal(add->bound, HONE_LIMIT_MEMORY);
  assert_float_equal(add->memory_pct, 91, 1e-9);
  assert_int_equal(layer(p, "small")->bound, HONE_LIMIT_LATENCY);
  assert_int_equal(between->bound, HONE_LIMIT_COMPUTE);
  assert_true(between->bound_confidence < 0.5);
  assert_int_equal(layer(p, "unknown")->bound, HONE_LIMIT_UNKNOWN);
  assert_float_equal(step_counter(f, add->step, "mte3_busy"), 91, 1e-9);
  char *text = report(p, HONE_REPORT_TEXT);
  assert_non_null(strstr(text, "Hardware counters (4)"));
  free(text);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* ---- OpenVINO ---- */

#define COUNTERS "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n"
#define REPORT                                                                                               \
  "Command line parameters\n-m;net.xml\n-d;CPU\n\nConfiguration setup\ntopology;Model1\ntarget "             \
  "device;CPU\nbatch size;4\n"                                                                               \
  "number of parallel infer requests;2\n\nExecution results\nread model time (ms);10\ncompile model time "   \
  "(ms);20.5\n"                                                                                              \
  "total number of iterations;7\nlatency (ms);0.41\navg latency;0.50\nmin latency;0.39\nmax "                \
  "latency;0.76\nthroughput;2020.21\n"

static void benchmark_app(void **unused) {
  (void)unused;
  hone_facts *f = import_text("benchmark_report.csv", REPORT);
  hone_profile *p = sound_profile(f);
  assert_float_equal(p->closure.wall_ms, 0.5, 1e-9);
  assert_float_equal(counter(f, "latency_median_ms"), 0.41, 1e-9);
  const hone_facts_meta *meta = hone_facts_get_meta(f);
  assert_float_equal(meta->batch, 4, 0);
  assert_float_equal(meta->runs, 7, 0);
  assert_float_equal(meta->load_ms, 30.5, 1e-9);
  assert_string_equal(meta->model, "net.xml");
  assert_non_null(unmeasured(f, "layers"));
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  f = import_text(
      "r.json",
      "{\"cmd_options\": {\"-m\": \"n.onnx\"}, \"configuration_setup\": {\"target_device\": \"GPU\"}, "
      "\"execution_results\": {\"latency_median\": 1.5, \"latency_average\": 2.5, \"throughput\": \"400\"}}");
  assert_float_equal(counter(f, "latency_mean_ms"), 2.5, 1e-9);
  assert_float_equal(counter(f, "throughput_fps"), 400, 1e-9);
  hone_facts_destroy(f);

  /* Two requests: means over them; what did not run is a node without a step. */
  f = import_text("c.csv",
                  COUNTERS "in;NOT_RUN;Parameter;unknown_f32;0.000;0.000\nc1;EXECUTED;Convolution;brgconv_"
                           "avx512_bf16;0.100;0.100\n"
                           "r;EXECUTED;Reorder;jit_uni_f32;0.050;0.050\nTotal;;;;0.150;0.150\n\n" COUNTERS
                           "in;NOT_RUN;Parameter;unknown_f32;0.000;0.000\nc1;EXECUTED;Convolution;brgconv_"
                           "avx512_bf16;0.300;0.300\n"
                           "r;EXECUTED;Reorder;jit_uni_f32;0.070;0.070\nTotal;;;;0.370;0.370\n");
  p = sound_profile(f);
  assert_float_equal(layer(p, "c1")->time_ms, 0.2, 1e-7);
  assert_float_equal(layer(p, "c1")->stats.max, 0.3, 1e-7);
  assert_string_equal(layer(p, "c1")->type, "Conv");
  assert_string_equal(layer(p, "c1")->tactic, "brgconv_avx512_bf16");
  assert_float_equal(p->closure.reformats_ms, 0.06, 1e-7);
  size_t n;
  assert_string_equal(hone_facts_steps(f, &n)[layer(p, "c1")->step].dtype, "bf16");
  const hone_node_fact *nodes = hone_facts_nodes(f, &n);
  assert_int_equal(n, 1);
  assert_string_equal(nodes[0].name, "in");
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  f = import_text("d.json", "{\"report_type\": \"detailed\", \"detailed_performance\": [{\"nodes\": "
                            "[{\"name\": \"a\", \"status\": \"EXECUTED\", "
                            "\"node_type\": \"MatMul\", \"real_time\": 1.5, \"exec_type\": \"x_i8\"}]}, "
                            "{\"nodes\": [{\"name\": \"a\", \"status\": "
                            "\"Status.EXECUTED\", \"node_type\": \"MatMul\", \"real_time\": \"0.5\"}]}]}");
  p = sound_profile(f);
  assert_float_equal(layer(p, "a")->time_ms, 1, 1e-7);
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  hone_error e = refuse_text("c.csv", COUNTERS "c1;EXECUTED;Convolution;x;oops;oops\n", HONE_ERROR_INPUT);
  assert_non_null(strstr(e.where, "line 2"));
  refuse_text("c.csv", COUNTERS, HONE_ERROR_INPUT);
  refuse_text("r.csv", "Configuration setup\nExecution results\n", HONE_ERROR_INPUT);
}

/* ---- oneDNN ---- */

#define CONV(ms)                                                                                             \
  "onednn_verbose,exec,cpu,convolution,jit:avx512_core,forward_inference,src_f32::blocked:acdb:f0 "          \
  "wei_f32::blocked:a:f0 "                                                                                   \
  "dst_f32::x,,alg:convolution_direct,g2mb2_ic4oc6_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1," ms "\n"
#define RELU(ms)                                                                                             \
  "onednn_verbose,exec,cpu,eltwise,jit:avx512_core,forward_inference,data_f32::x,,alg:eltwise_relu alpha:0 " \
  "beta:0,2x6x8x8," ms "\n"
#define REORDER(ms) "onednn_verbose,exec,cpu,reorder,jit:uni,undef,src_f32::x dst_f32::y,,,6x4x3x3," ms "\n"

static void onednn_log(void **unused) {
  (void)unused;
  /* Lines of a program between them; the reorder of weights is no part of the repeated sequence. */
  hone_facts *f = import_text(
      "log.txt", "starting\nonednn_verbose,info,oneDNN v3.2.1 (commit "
                 "abc)\nonednn_verbose,info,cpu,runtime:OpenMP,nthr:8\n" REORDER("5")
                     CONV("1.5") "epoch 1\nonednn_verbose,create:cache_hit,cpu,eltwise,x,y,z,,,2x2,7\n" RELU(
                         "0.25") "[rank 0] " CONV("0.5") RELU("0.75") CONV("1") RELU("0.5"));
  hone_profile *p = sound_profile(f);
  assert_int_equal(p->layer_count, 2);
  const hone_layer *conv = layer(p, "convolution g2mb2_ic4oc6_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1");
  assert_float_equal(conv->time_ms, 1, 1e-7);
  assert_float_equal(conv->stats.min, 0.5, 1e-7);
  assert_float_equal(conv->flops, 2.0 * 2 * 6 * 64 * 9 * 4 / 2, 1e-9);
  assert_string_equal(layer(p, "eltwise 2x6x8x8")->type, "Relu");
  assert_float_equal(p->closure.wall_ms, 1.5, 1e-7);
  assert_float_equal(counter(f, "primitives_in_log_ms"), 9.5, 1e-9);
  assert_float_equal(hone_facts_get_meta(f)->threads, 8, 0);
  assert_float_equal(hone_facts_get_meta(f)->runs, 3, 0);
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  /* A template decides; version 1 has a component and time stamps: then there are spans, gaps and runs. */
  f = import_text(
      "v1.log",
      "onednn_verbose,v1,info,template:timestamp,operation,engine,primitive,implementation,prop_kind,memory_"
      "descriptors,attributes,auxiliary,problem_desc,exec_time\n"
      "onednn_verbose,v1,1795272158542.122070,primitive,exec,cpu,matmul,brg:avx512_core,undef,src:f32::"
      "blocked:ab::f0,attr-post-ops:eltwise_relu,,64x32:32x16,0.5\n"
      "onednn_verbose,v1,1795272158543.122070,primitive,exec,cpu,softmax,jit,undef,src:f32::x,,,64x16,0.25\n"
      "onednn_verbose,v1,1795272158544.122070,primitive,exec,cpu,matmul,brg:avx512_core,undef,src:f32::"
      "blocked:ab::f0,attr-post-ops:eltwise_relu,,64x32:32x16,0.5\n"
      "onednn_verbose,v1,1795272158545.122070,primitive,exec,cpu,softmax,jit,undef,src:f32::x,,,64x16,0."
      "75\n");
  p = sound_profile(f);
  assert_int_equal(p->iterations, 2);
  assert_float_equal(p->walls_ms[0], 2, 1e-9);
  assert_float_equal(p->walls_ms[1], 1.75, 1e-9);
  assert_float_equal(layer(p, "softmax 64x16")->time_ms, 0.5, 1e-6);
  assert_float_equal(layer(p, "matmul 64x32:32x16")->flops, 2.0 * 64 * 32 * 16, 1e-9);
  assert_float_equal(p->closure.gaps_ms, (1.25 + 0.5) / 2, 1e-6);
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  f = import_text(
      "old.log",
      "mkldnn_verbose,exec,convolution,jit:avx2,forward_training,fsrc:nchw "
      "fdst:nChw8c,alg:convolution_direct,mb8_ic3oc96_ih227oh55kh11sh4dh0ph0_iw227ow55kw11sw4dw0pw0,4.5\n");
  p = sound_profile(f);
  assert_float_equal(p->closure.layers_ms, 4.5, 1e-6);
  assert_string_equal(p->layers[0].type, "Conv");
  assert_string_equal(p->layers[0].tactic, "jit:avx2");
  hone_profile_destroy(p);
  hone_facts_destroy(f);

  hone_error e =
      refuse_text("x.log", "onednn_verbose,info,oneDNN v3.2.1\nonednn_verbose,exec,cpu,convolution,jit\n",
                  HONE_ERROR_INPUT);
  assert_non_null(strstr(e.where, "x.log: line"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(raw_page),
      cmocka_unit_test(details_page),
      cmocka_unit_test(counters_in_reports),
      cmocka_unit_test(ascend_bounds),
      cmocka_unit_test(damaged_kernels),
      cmocka_unit_test(benchmark_app),
      cmocka_unit_test(onednn_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
