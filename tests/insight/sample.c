#include "insight/sample.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 256 };

/* Seconds the step takes and how it is recorded. */
typedef struct planned {
  double ms;
  int32_t step;
  hone_span_kind kind;
} planned;

typedef struct sample {
  hone_facts *f;
  int level;
  int32_t conv; /* node of the last convolution */
  planned plan[MOST_STEPS];
  size_t count;
  uint64_t live;
  unsigned random;
} sample;

/* Uniform in 0..1, the same on every machine. */
static double uniform(sample *s) {
  s->random = s->random * 1664525u + 1013904223u;
  return (s->random >> 8) / 16777216.0;
}

static int32_t add_node(sample *s, const char *name, const char *type, hone_node_fate fate, int32_t step,
                        const char *reason) {
  hone_node_fact n = {.name = name, .op_type = type, .fate = fate, .step = step, .reason = reason};
  return hone_facts_add_node(s->f, &n);
}

static int32_t next_step(const sample *s) {
  size_t n;
  hone_facts_steps(s->f, &n);
  return (int32_t)n;
}

static void add_step(sample *s, hone_step_fact *step, double efficiency, hone_span_kind kind) {
  /* Time by the roofline of the machine below, at the given efficiency. */
  double compute = (double)step->flops / 232e9,
         memory = (double)step->bytes / (step->bytes < 30e6 ? 180e9 : 30e9);
  double ms = 1e3 * (compute > memory ? compute : memory) / efficiency;
  if (s->count < MOST_STEPS) s->plan[s->count++] = (planned){ms, hone_facts_add_step(s->f, step), kind};
}

/* Convolution with batch normalisation and optional residual and ReLU: four steps at level 0, one at level 2.
 */
static void conv(sample *s, const char *name, int cin, int cout, int size, int kernel, bool add, bool relu) {
  char conv_name[96], bn[96], sum[96], act[96], in[48], out[48];
  snprintf(conv_name, sizeof conv_name, "/%s/Conv", name);
  snprintf(bn, sizeof bn, "/%s/BatchNormalization", name);
  snprintf(sum, sizeof sum, "/%s/Add", name);
  snprintf(act, sizeof act, "/%s/Relu", name);
  snprintf(in, sizeof in, "1x%dx%dx%d", cin, size, size);
  snprintf(out, sizeof out, "1x%dx%dx%d", cout, size, size);
  uint64_t pixels = (uint64_t)size * size, tensor = 4 * pixels * cout;
  uint64_t weights = 4ull * cin * cout * kernel * kernel;
  bool fused = s->level >= 2;
  int32_t at = next_step(s), nodes[4], n = 0;
  nodes[n++] = add_node(s, conv_name, "Conv", HONE_NODE_EXECUTED, at, NULL);
  int32_t later = fused ? at : at + 1;
  nodes[n++] = add_node(s, bn, "BatchNormalization", fused ? HONE_NODE_FOLDED : HONE_NODE_EXECUTED, later,
                        fused ? "fold_conv_bn: scale and shift went into the weights" : NULL);
  if (add)
    nodes[n++] =
        add_node(s, sum, "Add", fused ? HONE_NODE_FUSED : HONE_NODE_EXECUTED, fused ? at : ++later, NULL);
  if (relu)
    nodes[n++] =
        add_node(s, act, "Relu", fused ? HONE_NODE_FUSED : HONE_NODE_EXECUTED, fused ? at : ++later, NULL);
  hone_step_fact step = {
      .name = conv_name, .op_type = "Conv", .dtype = "f32", .shape_in = in, .shape_out = out};
  step.layout = "nhwc";
  step.tactic = kernel == 1 ? "conv_1x1_gemm_avx512" : cin < 16 ? "conv_first_avx512" : "conv_direct_avx512";
  step.flops = 2 * pixels * cin * cout * kernel * kernel;
  step.executed_flops = step.flops;
  step.bytes = 4 * pixels * cin + tensor + weights + (fused && add ? tensor : 0);
  step.weight_bytes = weights;
  step.channels_in = cin;
  step.channels_out = cout;
  step.anchor_node = nodes[0];
  step.nodes = nodes;
  step.node_count = fused ? (size_t)n : 1;
  step.epilogue = !fused ? NULL : add ? "bias + add + relu" : relu ? "bias + relu" : "bias";
  hone_alternative refused[] = {{"conv_winograd_f4", "kernel is 1x1, not 3x3", -1},
                                {"conv_direct_avx512", "slower than the chosen one", 0.4}};
  step.alternatives = refused;
  step.alternative_count = kernel == 1 ? 1 : 0;
  double efficiency = (cin < 16 ? 0.38 : kernel == 3 ? 0.84 : 0.74) * (0.9 + 0.15 * uniform(s));
  add_step(s, &step, fused ? efficiency : efficiency * 0.93, HONE_SPAN_KERNEL);
  static const char *const extra_types[] = {"BatchNormalization", "Add", "Relu"};
  const char *names[] = {bn, sum, act};
  bool wanted[] = {true, add, relu};
  for (int i = 0, k = 1; i < 3 && !fused; i++) {
    if (!wanted[i]) continue;
    hone_step_fact extra = {
        .name = names[i], .op_type = extra_types[i], .tactic = "pointwise_avx512", .dtype = "f32"};
    extra.shape_in = extra.shape_out = out;
    extra.flops = pixels * cout * (i == 0 ? 2 : 1);
    extra.bytes = tensor * (i == 1 ? 3 : 2);
    extra.anchor_node = nodes[k];
    extra.nodes = &nodes[k++];
    extra.node_count = 1;
    add_step(s, &extra, 0.16 + 0.1 * uniform(s), HONE_SPAN_KERNEL);
  }
  if (!fused) {
    hone_near_miss miss = {.pass = add ? "fuse_conv_add_relu" : "fuse_conv_bn_relu",
                           .reason = "level 0 applies no fusion",
                           .nodes = nodes,
                           .node_count = (size_t)n,
                           .bytes_saved = tensor * (add    ? 5
                                                    : relu ? 4
                                                           : 2),
                           .enable_level = add ? 2 : 1};
    hone_facts_add_near_miss(s->f, &miss);
    hone_facts_add_preview_step(s->f, &(hone_preview_step){.level = 2,
                                                           .name = "fused",
                                                           .op_type = "Conv",
                                                           .tactic = "conv_winograd",
                                                           .epilogue = "Conv + Relu",
                                                           .predicted_ms = 0.25,
                                                           .anchor_node = miss.nodes[0],
                                                           .nodes = miss.nodes,
                                                           .node_count = miss.node_count});
  }
  s->conv = nodes[0];
}

static void other(sample *s, const char *name, const char *type, uint64_t flops, uint64_t bytes,
                  uint64_t weights, hone_span_kind kind, const char *shape) {
  int32_t node =
      kind == HONE_SPAN_REFORMAT ? -1 : add_node(s, name, type, HONE_NODE_EXECUTED, next_step(s), NULL);
  hone_step_fact step = {
      .name = name, .op_type = type, .dtype = "f32", .shape_in = shape, .shape_out = shape};
  step.tactic = kind == HONE_SPAN_REFORMAT ? "reformat_avx512" : "pool_avx512";
  step.flops = flops;
  step.bytes = bytes;
  step.weight_bytes = weights;
  step.is_reformat = kind == HONE_SPAN_REFORMAT;
  step.anchor_node = node;
  step.nodes = &node;
  step.node_count = node >= 0;
  add_step(s, &step, 0.6, kind);
}

static void network(sample *s) {
  static const int blocks[] = {3, 4, 6, 3};
  char name[64];
  other(s, "input to nhwc", "Reformat", 0, 1204224, 0, HONE_SPAN_REFORMAT, "1x3x224x224");
  conv(s, "stem/conv1", 3, 64, 112, 7, false, true);
  other(s, "/stem/MaxPool", "MaxPool", 1806336, 4014080, 0, HONE_SPAN_KERNEL, "1x64x56x56");
  int in = 64, size = 56, width = 64;
  for (int layer = 0; layer < 4; layer++, width *= 2) {
    if (layer) size /= 2;
    for (int block = 0; block < blocks[layer]; block++) {
      const char *part[] = {"conv1", "conv2", "conv3", "downsample"};
      for (int p = 0; p < 4; p++) {
        if (p == 3 && block) continue;
        snprintf(name, sizeof name, "layer%d/block%d/%s", layer + 1, block, part[p]);
        /* A hostile name that must show as text everywhere. */
        if (layer == 2 && block == 3 && p == 1) snprintf(name, sizeof name, "layer3%s", SAMPLE_HOSTILE_NAME);
        int cin = p == 0 || p == 3 ? in : width, cout = p == 2 || p == 3 ? 4 * width : width;
        conv(s, name, cin, cout, size, p == 1 ? 3 : 1, p == 2, p < 3);
      }
      in = 4 * width;
    }
  }
  other(s, "/GlobalAveragePool", "GlobalAveragePool", 100352, 409600, 0, HONE_SPAN_KERNEL, "1x2048x1x1");
  other(s, "/fc/Gemm", "Gemm", 4096000, 8204192, 8196000, HONE_SPAN_KERNEL, "1x1000");
}

static void run(sample *s, int runs) {
  int64_t t = 5000000000;
  for (int i = -3; i < runs; i++) {
    double slow = 1 + 0.015 * uniform(s) + (uniform(s) > 0.95 ? 0.06 : 0);
    int64_t start = t, first = t;
    t += 3000;
    for (size_t k = 0; k < s->count; k++) {
      int64_t took = (int64_t)(s->plan[k].ms * 1e6 * slow * (0.98 + 0.05 * uniform(s)));
      hone_span span = {
          .start_ns = t, .end_ns = t + took, .kind = s->plan[k].kind, .iteration = i < 0 ? -1 : i};
      span.step = s->plan[k].step;
      hone_facts_add_span(s->f, &span);
      size_t n;
      const hone_step_fact *step = hone_facts_steps(s->f, &n);
      if (i == 0 && s->plan[k].step >= 0 && (size_t)s->plan[k].step < n) {
        step += s->plan[k].step;
        uint64_t live = (step->bytes - step->weight_bytes) + (uint64_t)(200000 * uniform(s));
        hone_facts_add_memory_sample(
            s->f, &(hone_memory_sample){.time_ns = t,
                                        .planned_bytes = live,
                                        .rss_bytes = (s->level ? 138u : 171u) * 1000000ull + live});
      }
      t += took + 900 + (int64_t)(600 * uniform(s)) + (s->level == 0 ? 1500 : 0);
    }
    hone_span whole = {
        .start_ns = start, .end_ns = t, .kind = HONE_SPAN_RUN, .iteration = i < 0 ? -1 : i, .step = -1};
    whole.name = "run";
    hone_facts_add_span(s->f, &whole);
    if (i >= 0) hone_facts_add_wall(s->f, i, t - first + 4000 + (int64_t)(3000 * uniform(s)));
    t += 20000;
  }
}

hone_facts *sample_facts(int level) { return sample_facts_of(level, 60); }

hone_facts *sample_facts_of(int level, int runs) {
  static sample s;
  s = (sample){.f = hone_facts_create(), .level = level, .random = 7};
  if (!s.f) return NULL;
  hone_facts_meta m = {
      .tool = "hone", .tool_version = "0.1.0", .commit = "0431d13", .model = "resnet50.onnx"};
  m.device = "AMD EPYC 9B14";
  m.backend = "cpu";
  m.isa = "avx512vnni";
  m.os = "Linux 6.1";
  m.precision = "f32";
  m.date = "2026-11-21T04:05:00Z";
  m.flags = "hone resnet50.onnx";
  m.outer_clock = "CLOCK_MONOTONIC_RAW";
  m.inner_clock = "CLOCK_MONOTONIC";
  m.batch = 1;
  m.threads = 2;
  m.cores = 2;
  m.opt_level = level;
  m.seed = 1;
  m.warmups = 3;
  m.runs = runs;
  m.timer_overhead_ns = 23;
  m.load_ms = level ? 212 : 148;
  hone_facts_set_meta(s.f, &m);
  const hone_roof roofs[] = {{"f32", 1, 116, 0, 0},      {"f32", 2, 232, 0, 0},
                             {"bf16", 2, 465, 0, 0},     {"L1", 2, 0, 412, 65536},
                             {"L2", 2, 0, 218, 2097152}, {"L3", 2, 0, 180, 33554432},
                             {"DRAM", 1, 0, 21, 0},      {"DRAM", 2, 0, 30, 0}};
  for (size_t i = 0; i < sizeof roofs / sizeof *roofs; i++) hone_facts_add_roof(s.f, &roofs[i]);
  hone_memory_facts memory = {.naive_sum = level ? 44000000 : 128000000, .weights = 102228128};
  memory.predicted_peak = memory.actual_peak = level ? 5619712 : 9633792;
  memory.rss_peak = level ? 148000000 : 181000000;
  hone_facts_set_memory(s.f, &memory);
  hone_facts_add_version(s.f, "hone", "0.1.0");
  hone_facts_add_version(s.f, "ONNX opset", "17");
  hone_facts_add_unmeasured(s.f, "hardware counters", "perf_event is not permitted on this machine");
  hone_facts_name_lane(s.f, 0, "main");
  network(&s);
  run(&s, runs);
  return s.f;
}
