#include "rules/illnesses.h"

#include <stddef.h>
#include <string.h>

static void scale(fixture *f, double factor) {
  for (int i = 0; i < 5; i++) f->layers[i].ms *= factor;
}

void ill_slow_convolutions(fixture *f) { scale(f, 2.6); }
static void fair_convolutions(fixture *f) { scale(f, 1.1); }

void ill_memory(fixture *f) { fixture_add(f, "norm", "LayerNormalization", 6)->mb = 0.9 * 20 * 6; }
static void little_memory(fixture *f) { fixture_add(f, "norm", "LayerNormalization", 1)->mb = 0.9 * 20; }

void ill_gaps(fixture *f) { f->gap_ms = 0.3; }
void ill_small_gaps(fixture *f) { f->gap_ms = 0.1; }

void ill_unfused(fixture *f) {
  f->meta.opt_level = 0;
  fixture_add(f, "c", "Conv", 1)->mb = 4;
  fixture_add(f, "bn", "BatchNormalization", 0.5)->mb = 8;
  fixture_add(f, "relu", "Relu", 0.5)->mb = 8;
}
static void fused(fixture *f) {
  ill_unfused(f);
  /* The same operators where they cannot ride along: after a pooling. */
  f->layers[f->count - 3].type = "MaxPool";
}

void ill_one_thread(fixture *f) { f->meta.threads = 1; }
static void one_core(fixture *f) { f->meta.threads = f->meta.cores = 1; }

static void reformats(fixture *f, int many) {
  for (int i = 0; i < many; i++) {
    fixture_layer *l = fixture_add(f, i ? "r1" : "r0", "Reformat", 0.6);
    l->kind = HONE_SPAN_REFORMAT;
    l->reformat = true;
    l->mb = 10;
  }
}
static void ping_pong(fixture *f) {
  reformats(f, 2);
  fixture_add(f, "tail", "Softmax", 0.1);
}
static void edge_only(fixture *f) { reformats(f, 1); }

void ill_outlier(fixture *f) { f->layers[1].jitter = 3; }
static void steady(fixture *f) { f->layers[1].jitter = 1.2; }

static void channels(fixture *f, int cin, int cout) {
  f->layers[0].cin = cin;
  f->layers[0].cout = cout;
  f->layers[0].ms *= 2.5;
}
static void few_channels(fixture *f) { channels(f, 3, 64); }
static void enough_channels(fixture *f) { channels(f, 16, 64); }
void ill_odd_channels(fixture *f) { channels(f, 58, 255); }
static void even_channels(fixture *f) { channels(f, 64, 256); }

static void reference(fixture *f) {
  fixture_layer *l = fixture_add(f, "odd_op", "Einsum", 2);
  l->reference = true;
  l->gflop = 0.001;
  l->mb = 1;
  l->reason = "only two operands";
}
static void on_host(fixture *f) {
  reference(f);
  f->meta.backend = "cuda";
  fixture_add(f, "copy_in", "Copy", 0.4)->gflop = 0;
}
static void tiny_on_host(fixture *f) {
  on_host(f);
  f->layers[f->count - 1].ms = f->layers[f->count - 2].ms = 0.02;
}
static void tiny_reference(fixture *f) {
  reference(f);
  f->layers[f->count - 1].ms = 0.05;
}

static void unknown_shape(fixture *f) {
  reference(f);
  f->layers[f->count - 1].shape = "1x?x8";
}
static void known_shape(fixture *f) {
  reference(f);
  f->layers[f->count - 1].shape = "1x8x8";
}

static void pre(fixture *f) { f->pre_ms = 6; }
static void little_pre(fixture *f) { f->pre_ms = 2; }
static void post(fixture *f) { f->post_ms = 6; }
static void little_post(fixture *f) { f->post_ms = 2; }
static void h2d(fixture *f) { f->h2d_ms = 5; }
static void little_h2d(fixture *f) { f->h2d_ms = 1; }

/* ---- accelerators ---- */

void ill_on_device(fixture *f) {
  f->meta.backend = "cuda";
  f->meta.isa = "sm_90";
  f->meta.streams = 2;
  f->meta.precision = "fp16";
  for (int i = 0; i < f->count; i++) f->layers[i].dtype = "fp16";
}
static void copies_both_ways(fixture *f) {
  ill_on_device(f);
  f->h2d_ms = 4;
  f->d2h_ms = 3;
}
static void few_copies(fixture *f) {
  ill_on_device(f);
  f->h2d_ms = f->d2h_ms = 1;
}
static void small_copies(fixture *f) {
  ill_on_device(f);
  f->h2d_ms = 1.5;
  f->small_copies = 16;
}
static void two_copies(fixture *f) {
  small_copies(f);
  f->small_copies = 2;
}
void ill_pageable(fixture *f) {
  ill_on_device(f);
  f->h2d_ms = 5;
  f->pageable = true;
}
static void pinned(fixture *f) {
  ill_on_device(f);
  f->h2d_ms = 5;
}
static void exchanged(fixture *f) { fixture_add(f, "ncclDevKernel_AllReduce_Sum_f32", "AllReduce", 4); }
static void exchanged_little(fixture *f) { fixture_add(f, "ncclDevKernel_AllReduce", "AllReduce", 0.2); }
static void waits(fixture *f) {
  ill_on_device(f);
  f->sync_ms = 3;
}
static void short_waits(fixture *f) {
  ill_on_device(f);
  f->sync_ms = 0.3;
}
void ill_one_stream(fixture *f) {
  ill_on_device(f);
  f->meta.streams = 1;
  f->h2d_ms = 1.5;
  f->d2h_ms = 1.5;
}
static void two_streams(fixture *f) {
  ill_one_stream(f);
  f->meta.streams = 2;
}
static void several(fixture *f, const char *type, double ms) {
  fixture_layer *l = fixture_add(f, type, type, ms);
  l->mb = 0.5 * 20 * ms;
}
static void diverse(fixture *f) {
  f->count = 1;
  several(f, "Gather", 1.5);
  several(f, "Reshape", 1.2);
  several(f, "Softmax", 1.3);
  several(f, "TopK", 1.4);
}
static void two_kinds(fixture *f) {
  f->count = 2;
  several(f, "Gather", 4);
}
static void tiny(fixture *f, double us) {
  static const char *const names[] = {"t0",  "t1",  "t2",  "t3",  "t4",  "t5",  "t6",  "t7",
                                      "t8",  "t9",  "t10", "t11", "t12", "t13", "t14", "t15",
                                      "t16", "t17", "t18", "t19", "t20", "t21", "t22", "t23"};
  f->count = 0;
  f->gap_ms = 0.0002;
  f->outside_ms = 0.001;
  for (int i = 0; i < 24; i++) fixture_add(f, names[i], "Softmax", us / 1e3);
}
static void tiny_operators(fixture *f) { tiny(f, 4); }
static void larger_operators(fixture *f) { tiny(f, 40); }
void ill_latency(fixture *f) {
  for (int i = 0; i < 3; i++) {
    fixture_layer *l = fixture_add(f, i == 0 ? "l0" : i == 1 ? "l1" : "l2", "Softmax", 4);
    l->gflop = 0.1 * 0.4;
    l->mb = 0.2 * 20 * 4;
  }
}
static void well_used(fixture *f) {
  ill_latency(f);
  for (int i = 0; i < 3; i++) f->layers[f->count - 1 - i].gflop = 0.88 * 0.4;
}
static void kernels(fixture *f, double compute, double memory) {
  ill_on_device(f);
  f->no_roofs = true;
  for (int i = 0; i < 3; i++) {
    fixture_counter(f, "compute_pct_of_peak", i, compute);
    fixture_counter(f, "memory_pct_of_peak", i, memory);
  }
}
/* As Nsight Compute counts them: no roofs are needed. */
static void idle_units(fixture *f) { kernels(f, 12, 21); }
static void busy_units(fixture *f) { kernels(f, 80, 21); }
static void busy_memory(fixture *f) { kernels(f, 25, 88); }
static void neither(fixture *f) { kernels(f, 45, 50); }
static void throttle(fixture *f) {
  ill_on_device(f);
  fixture_counter(f, "sm_clock", -1, 1200);
  fixture_counter(f, "sm_clock_most", -1, 1980);
  fixture_counter(f, "throttle_reasons", -1, 0x40);
  fixture_counter(f, "temperature", -1, 88);
}
static void low_clock_by_choice(fixture *f) {
  ill_on_device(f);
  fixture_counter(f, "sm_clock", -1, 1200);
  fixture_counter(f, "sm_clock_most", -1, 1980);
  fixture_counter(f, "throttle_reasons", -1, 0x2);
  fixture_counter(f, "temperature", -1, 40);
}
static void power_cap(fixture *f) {
  ill_on_device(f);
  fixture_counter(f, "sm_clock", -1, 1500);
  fixture_counter(f, "sm_clock_most", -1, 1980);
  fixture_counter(f, "power", -1, 699);
  fixture_counter(f, "power_limit", -1, 700);
}
static void cool(fixture *f) {
  ill_on_device(f);
  fixture_counter(f, "sm_clock", -1, 1975);
  fixture_counter(f, "sm_clock_most", -1, 1980);
}
static void neighbour(fixture *f) {
  fixture_counter(f, "others_cpu", -1, 45);
  fixture_counter(f, "involuntary_switches", -1, 300);
}
static void quiet_neighbour(fixture *f) {
  fixture_counter(f, "others_cpu", -1, 3);
  fixture_counter(f, "involuntary_switches", -1, 30);
}
static void hindered(fixture *f) {
  neighbour(f);
  fixture_counter(f, "run_delay", -1, 35);
}
static void beside_a_neighbour(fixture *f) {
  neighbour(f);
  fixture_counter(f, "run_delay", -1, 2);
}
static void weights(fixture *f) {
  f->count = 3;
  fixture_layer *l = fixture_add(f, "big", "Gemm", 6);
  l->mb = 0.9 * 20 * 6;
  l->weights_mb = 0.99 * l->mb;
  l->gflop = 0.01;
}
void ill_batch_1(fixture *f) { weights(f); }
static void batch_8(fixture *f) {
  weights(f);
  f->meta.batch = 8;
}
void ill_full_precision(fixture *f) {
  ill_on_device(f);
  f->no_roofs = true;
  f->meta.precision = "f32";
  for (int i = 0; i < f->count; i++) f->layers[i].dtype = NULL;
}
static void half_precision(fixture *f) {
  ill_on_device(f);
  f->no_roofs = true;
}
/* The plan before the rewrite is in f32 whatever was asked for. */
static void narrow_asked_for(fixture *f) {
  ill_full_precision(f);
  f->options[f->option_count++] = (hone_note){"precision", "auto"};
}
/* A quantised network as it was exported: its products become int8 with the Q/DQ around them. */
static void unfused_int8(fixture *f) {
  static const char *const names[] = {"q0", "q1", "q2", "q3", "q4", "q5"};
  ill_full_precision(f);
  for (int i = 0; i < 6; i++) fixture_add(f, names[i], "QuantizeLinear", 0.02);
}
/* As trtexec exports it: no roofs, no counters. */
static void by_trtexec(fixture *f, const char *dtype) {
  ill_full_precision(f);
  f->meta.tool = "trtexec";
  f->meta.precision = NULL;
  for (int i = 0; i < f->count; i++) f->layers[i].dtype = dtype;
}
static void untold_numbers(fixture *f) { by_trtexec(f, ""); }
static void untold_but_quantised(fixture *f) {
  by_trtexec(f, "");
  fixture_add(f, "QuantizeLinear_7", "Pool", 0.02)->dtype = "";
}
static void sixteen_bits(fixture *f) { by_trtexec(f, "f16"); }
static void eight_bits(fixture *f) { by_trtexec(f, "i8"); }
static void few_convolutions(fixture *f) {
  eight_bits(f);
  fixture_add(f, "softmax", "Softmax", 9)->dtype = "i8";
}
/* Most of what the products move are weights, and nobody knows the memory's limit. */
static void untold_weights(fixture *f, double batch) {
  by_trtexec(f, "i8");
  f->meta.batch = batch;
  f->count = 3;
  fixture_layer *l = fixture_add(f, "big", "Gemm", 9);
  l->dtype = "i8";
  l->mb = 40;
  l->weights_mb = 39;
}
static void untold_batch_1(fixture *f) { untold_weights(f, 1); }
static void untold_batch_8(fixture *f) { untold_weights(f, 8); }
void ill_int8(fixture *f) {
  for (int i = 0; i < 5; i++) f->layers[i].dtype = "int8";
  for (int i = 0; i < 5; i++) f->layers[i].ms = 0.8;
  f->meta.precision = "int8";
}
static void conversions(fixture *f) {
  ill_int8(f);
  fixture_add(f, "q0", "QuantizeLinear", 0.5)->mb = 8;
  fixture_add(f, "dq0", "DequantizeLinear", 0.5)->mb = 8;
  fixture_add(f, "q1", "QuantizeLinear", 0.5)->mb = 8;
}
static void slow_int8(fixture *f) {
  ill_int8(f);
  for (int i = 0; i < 5; i++) f->layers[i].ms = 2.3;
}
static void sparse(fixture *f) {
  ill_on_device(f);
  for (int i = 0; i < 5; i++) fixture_counter(f, "weights_2_4", i, 100);
}
static void dense(fixture *f) {
  ill_on_device(f);
  for (int i = 0; i < 5; i++) fixture_counter(f, "weights_2_4", i, 14);
}
/* Denormal weights in a layer that takes ten times its model's time; in one that keeps to it. */
static void denormal(fixture *f) {
  f->layers[2].model_ms = f->layers[2].ms / 20;
  fixture_counter(f, "weights_denormal", 2, 31);
}
static void harmless_denormal(fixture *f) { fixture_counter(f, "weights_denormal", 2, 0.001); }
static void lost_events(fixture *f) { f->meta.dropped_spans = 17; }
static void nothing_lost(fixture *f) { f->runs = 40; }
void ill_drift(fixture *f) {
  f->runs = 80;
  f->drift = 0.003;
}
static void little_drift(fixture *f) {
  f->runs = 80;
  f->drift = 0.0004;
}
static void leak(fixture *f) { f->leak_mib = 2; }
static void small_leak(fixture *f) { f->leak_mib = 0.1; }

static void d2h(fixture *f) { f->d2h_ms = 5; }
static void little_d2h(fixture *f) { f->d2h_ms = 1; }

/* The convolutions in another kernel, and all else as it is: the model's word for the same tactic stays. */
static void previewed(fixture *f, const char *tactic, double ms) {
  for (int i = 0; i < f->count; i++) {
    bool conv = strcmp(f->layers[i].type, "Conv") == 0;
    f->layers[i].preview_tactic = conv ? tactic : "some";
    f->layers[i].preview_ms = conv ? ms : f->layers[i].ms / 2;
  }
}
void ill_faster_kernels(fixture *f) { previewed(f, "another", 0.6); }
void ill_same_kernels(fixture *f) { previewed(f, "some", 1); }

static void over_model(fixture *f) { f->layers[2].model_ms = f->layers[2].ms / 12; }
static void near_model(fixture *f) { f->layers[2].model_ms = f->layers[2].ms / 5; }

/* A run of twelve times the usual while somebody else had the processor, in a minute of measuring. */
static void slow_single_runs(fixture *f, double wall_ms) {
  f->slow_runs[f->slow_run_count++] =
      (hone_slow_run){.time_s = 12, .wall_ms = wall_ms, .usual_ms = 10, .involuntary_switches = 3};
  fixture_counter(f, "measured_ms", -1, 2000);
}
static void interrupted_runs(fixture *f) { slow_single_runs(f, 120); }
static void usual_runs(fixture *f) { slow_single_runs(f, 10); }

/* As bench --duration records: whole runs, no layers. */
static void slowed_down(fixture *f, double times) {
  f->count = 0;
  f->outside_ms = 5;
  fixture_counter(f, "clock_mhz_min", -1, 1500);
  fixture_counter(f, "clock_mhz_max", -1, 3000);
  fixture_counter(f, "throttles", -1, times);
}
static void hot_processor(fixture *f) { slowed_down(f, 12); }
static void idle_processor(fixture *f) { slowed_down(f, 0); }

const rule_case illnesses[] = {
    {"faster_tactics", ill_faster_kernels, ill_same_kernels},
    {"conv_dominated", ill_slow_convolutions, fair_convolutions},
    {"memory_bound", ill_memory, little_memory},
    {"scheduling_gaps", ill_gaps, ill_small_gaps},
    {"unfused_pattern", ill_unfused, fused},
    {"single_thread", ill_one_thread, one_core},
    {"layout_conversions", ping_pong, edge_only},
    {"outlier_operator", ill_outlier, steady},
    {"outlier_operator", over_model, near_model},
    {"throttled", hot_processor, idle_processor},
    {"small_channels", few_channels, enough_channels},
    {"misaligned_channels", ill_odd_channels, even_channels},
    {"reference_fallback", reference, tiny_reference},
    {"host_fallback", on_host, tiny_on_host},
    {"slow_d2h", d2h, little_d2h},
    {"copy_dominated", copies_both_ways, few_copies},
    {"many_small_copies", small_copies, two_copies},
    {"pageable_copies", ill_pageable, pinned},
    {"communication", exchanged, exchanged_little},
    {"sync_heavy", waits, short_waits},
    {"single_stream", ill_one_stream, two_streams},
    {"operator_diverse", diverse, two_kinds},
    {"launch_bound", tiny_operators, larger_operators},
    {"latency_bound", ill_latency, well_used},
    {"latency_bound", idle_units, busy_units},
    {"memory_bound", busy_memory, neither},
    {"throttled", throttle, low_clock_by_choice},
    {"throttled", power_cap, cool},
    {"busy_neighbour", neighbour, quiet_neighbour},
    {"busy_neighbour", hindered, beside_a_neighbour},
    {"missing_batch", ill_batch_1, batch_8},
    {"reduced_precision", ill_full_precision, half_precision},
    {"reduced_precision", ill_full_precision, narrow_asked_for},
    {"reduced_precision", ill_full_precision, unfused_int8},
    {"reduced_precision", untold_numbers, untold_but_quantised},
    {"reduced_precision", sixteen_bits, half_precision},
    {"conv_dominated", eight_bits, few_convolutions},
    {"missing_batch", untold_batch_1, untold_batch_8},
    {"quantisation_without_gain", conversions, ill_int8},
    {"quantisation_without_gain", slow_int8, ill_int8},
    {"sparse_weights", sparse, dense},
    {"denormal_weights", denormal, harmless_denormal},
    {"incomplete_record", lost_events, nothing_lost},
    {"latency_drift", ill_drift, little_drift},
    {"slow_runs", interrupted_runs, usual_runs},
    {"memory_leak", leak, small_leak},
    {"dynamic_shapes", unknown_shape, known_shape},
    {"slow_pre", pre, little_pre},
    {"slow_post", post, little_post},
    {"h2d_bound", h2d, little_h2d},
};
const size_t illness_count = sizeof illnesses / sizeof *illnesses;
