#include "rules/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The machine of the fixtures: 100 GFLOP/s and 20 GB/s with two threads, half of the arithmetic with one. */
enum { GFLOPS = 100, DRAM = 20 };

fixture_layer *fixture_add(fixture *f, const char *name, const char *type, double ms) {
  assert_true(f->count < FIXTURE_LAYERS);
  fixture_layer *l = &f->layers[f->count++];
  *l = (fixture_layer){.name = name, .type = type, .ms = ms};
  return l;
}

fixture fixture_healthy(void) {
  static const char *const names[] = {"conv0", "conv1", "conv2", "conv3", "conv4"};
  fixture f = {.runs = 20, .gap_ms = 0.01, .outside_ms = 0.01, .near_miss_level = -2};
  f.meta.model = "m.onnx";
  f.meta.threads = f.meta.cores = 2;
  f.meta.opt_level = 2;
  f.meta.batch = 1;
  for (int i = 0; i < 5; i++) {
    fixture_layer *l = fixture_add(&f, names[i], "Conv", 2);
    l->gflop = 0.88 * GFLOPS * 2e-3;
    l->mb = 4;
    l->cin = l->cout = 64;
  }
  fixture_layer *pool = fixture_add(&f, "pool", "MaxPool", 0.3);
  pool->mb = 0.8 * DRAM * 0.3;
  fixture_layer *product = fixture_add(&f, "fc", "Gemm", 0.5);
  product->gflop = 0.01;
  product->mb = 0.9 * DRAM * 0.5;
  product->weights_mb = product->mb * 0.95;
  return f;
}

void fixture_counter(fixture *f, const char *name, int step, double value) {
  f->counters[f->counter_count++] = (hone_counter){name, "", step, value};
}

static void add_tables(fixture *f) {
  hone_facts_set_meta(f->facts, &f->meta);
  const hone_roof roofs[] = {
      {"f32", 1, GFLOPS / 2, 0, 0}, {"f32", 2, GFLOPS, 0, 0}, {"DRAM", 1, 0, 15, 0}, {"DRAM", 2, 0, DRAM, 0}};
  for (int i = 0; i < 4 && !f->no_roofs; i++) hone_facts_add_roof(f->facts, &roofs[i]);
  if (f->int8_gflops > 0) hone_facts_add_roof(f->facts, &(hone_roof){"int8", 2, f->int8_gflops, 0, 0});
  for (int i = 0; i < f->count; i++) {
    const fixture_layer *l = &f->layers[i];
    int32_t node =
        hone_facts_add_node(f->facts, &(hone_node_fact){.name = l->name, .op_type = l->type, .step = i});
    hone_step_fact step = {.name = l->name,
                           .op_type = l->type,
                           .tactic = "some",
                           .dtype = l->dtype ? l->dtype : "f32",
                           .on_host = l->on_host,
                           .epilogue = l->does,
                           .anchor_node = l->does ? -1 : node,
                           .nodes = &node,
                           .node_count = l->does ? 0 : 1};
    step.flops = (uint64_t)(l->gflop * 1e9);
    step.bytes = (uint64_t)(l->mb * 1e6);
    step.weight_bytes = (uint64_t)(l->weights_mb * 1e6);
    step.shape_out = l->shape;
    step.is_reference = l->reference;
    step.is_reformat = l->reformat;
    step.channels_in = l->cin;
    step.channels_out = l->cout;
    hone_alternative refused = {"fast_one", l->reason, -1};
    step.alternatives = &refused;
    step.alternative_count = l->reason != NULL;
    /* a cost model that sees half of the truth everywhere */
    step.predicted_ms = l->model_ms > 0 ? l->model_ms : l->ms / 2;
    hone_facts_add_step(f->facts, &step);
    if (l->preview_ms > 0)
      hone_facts_add_preview_step(f->facts, &(hone_preview_step){.level = 2,
                                                                 .name = l->name,
                                                                 .op_type = l->type,
                                                                 .tactic = l->preview_tactic,
                                                                 .epilogue = l->does,
                                                                 .predicted_ms = l->preview_ms,
                                                                 .timed_ms = l->timed_ms,
                                                                 .scaled_ms = l->scaled_ms,
                                                                 .anchor_node = l->does ? -1 : node,
                                                                 .nodes = &node,
                                                                 .node_count = l->does ? 0 : 1});
  }
  for (int i = 0; i < f->counter_count; i++) hone_facts_add_counter(f->facts, &f->counters[i]);
  for (int i = 0; i < f->slow_run_count; i++) hone_facts_add_slow_run(f->facts, &f->slow_runs[i]);
  for (int i = 0; i < f->option_count; i++)
    hone_facts_add_option(f->facts, f->options[i].what, f->options[i].text);
  for (int64_t i = 0; i < 60 && f->leak_mib > 0; i++)
    hone_facts_add_memory_sample(
        f->facts,
        &(hone_memory_sample){
            .time_ns = i * 1000000000,
            .rss_bytes = (uint64_t)((200 + f->leak_mib * (double)i + 0.2 * (double)(i % 3)) * 1048576)});
  if (f->near_miss_level > -2) {
    int32_t nodes[] = {0, f->count - 1};
    hone_near_miss miss = {.pass = "fuse_it",
                           .reason = "two consumers",
                           .nodes = nodes,
                           .node_count = 2,
                           .bytes_saved = 1000,
                           .enable_level = f->near_miss_level};
    hone_facts_add_near_miss(f->facts, &miss);
  }
}

static void add_span(fixture *f, hone_span_kind kind, int run, int step, int64_t *t, double ms) {
  int64_t end = *t + (int64_t)(ms * 1e6);
  hone_span span = {.start_ns = *t, .end_ns = end, .kind = kind, .iteration = run, .step = step};
  if (kind == HONE_SPAN_COPY_H2D && f->pageable) span.source_memory = HONE_MEMORY_PAGEABLE;
  if (kind == HONE_SPAN_COPY_H2D && f->small_copies) span.bytes = 4096;
  if (ms > 0) hone_facts_add_span(f->facts, &span);
  *t = end;
}

static void add_run(fixture *f, int run, int64_t *t) {
  add_span(f, HONE_SPAN_PRE, run, -1, t, f->pre_ms);
  int copies = f->small_copies ? f->small_copies : 1;
  for (int i = 0; i < copies; i++) add_span(f, HONE_SPAN_COPY_H2D, run, -1, t, f->h2d_ms / copies);
  int64_t start = *t;
  for (int i = 0; i < f->count; i++) {
    const fixture_layer *l = &f->layers[i];
    *t += (int64_t)(1e6 * (f->gap_ms + (i == 2 ? f->one_gap_ms : 0)));
    add_span(f, l->kind ? l->kind : HONE_SPAN_KERNEL, run, i, t,
             l->ms * (1 + f->drift * run) * (l->jitter > 0 && run % 5 == 4 ? l->jitter : 1));
  }
  add_span(f, HONE_SPAN_SYNC, run, -1, t, f->sync_ms);
  hone_span whole = {.start_ns = start, .end_ns = *t, .kind = HONE_SPAN_RUN, .iteration = run, .step = -1};
  hone_facts_add_span(f->facts, &whole);
  hone_facts_add_wall(f->facts, run, *t - start + (int64_t)(f->outside_ms * 1e6));
  add_span(f, HONE_SPAN_COPY_D2H, run, -1, t, f->d2h_ms);
  add_span(f, HONE_SPAN_POST, run, -1, t, f->post_ms);
}

void fixture_diagnose(fixture *f) {
  hone_error error = {0};
  f->facts = hone_facts_create();
  assert_non_null(f->facts);
  add_tables(f);
  int64_t t = 1000000;
  for (int run = 0; run < f->runs; run++) add_run(f, run, &t);
  assert_int_equal(hone_profile_create(f->facts, NULL, &f->profile, &error), HONE_OK);
  assert_int_equal(
      hone_diagnose(f->profile,
                    &(hone_diagnose_options){.language = f->language, .float_profile = f->float_profile},
                    &f->findings, &error),
      HONE_OK);
}

void fixture_free(fixture *f) {
  hone_findings_destroy(f->findings);
  hone_profile_destroy(f->profile);
  hone_facts_destroy(f->facts);
}

const hone_finding *fixture_finding(const fixture *f, const char *rule) {
  size_t n = strlen(rule);
  for (size_t i = 0; i < f->findings->count; i++) {
    const char *id = f->findings->items[i].id;
    if (strncmp(id, rule, n) == 0 && (id[n] == 0 || id[n] == ':')) return &f->findings->items[i];
  }
  return NULL;
}

double fixture_evidence(const hone_finding *finding, const char *name) {
  for (size_t i = 0; i < finding->evidence_count; i++)
    if (strcmp(finding->evidence[i].name, name) == 0) return finding->evidence[i].value;
  return NAN;
}

void fixture_complete(const hone_finding *f) {
  assert_true(f->title && *f->title && f->subject && *f->subject);
  assert_true(f->cause && *f->cause);
  assert_false(strncmp(f->subject, "1 ", 2) == 0 && f->subject[1 + strcspn(f->subject + 2, " ,")] == 's');
  assert_true(f->evidence_count >= 2);
  for (size_t i = 0; i < f->evidence_count; i++) {
    assert_true(f->evidence[i].source && *f->evidence[i].source);
    assert_true(isfinite(f->evidence[i].value));
  }
  assert_true(f->command_count >= 1);
  for (size_t i = 0; i < f->command_count; i++) {
    const char *c = f->commands[i];
    assert_true(*c);
    for (const char *const *word = (const char *const[]){"{model}", "{onnx}", "{file}", "{device}", "{float}",
                                                         "{layer}", "{n}", NULL};
         *word; word++)
      if (strstr(c, *word)) fail_msg("a placeholder is left in: %s", c);
    if (strncmp(c, "hone ", 5) == 0 && strncmp(c, "hone de", 7) != 0)
      assert_true(strstr(c, "m.onnx") || strstr(c, " FLOAT.onnx"));
  }
  assert_true(f->p <= 1);
  if (f->category == HONE_CATEGORY_NOTE)
    assert_true(f->predicted_gain_pct == 0 && f->severity == HONE_SEVERITY_LOW);
  else
    assert_true(f->p > 0 && f->s > 1);
  assert_true(f->s_basis && *f->s_basis);
  assert_true(f->s_low >= 1 && f->s_low <= f->s && f->s <= f->s_high);
  assert_true(f->gain_low_pct <= f->predicted_gain_pct && f->predicted_gain_pct <= f->gain_high_pct);
  assert_true(f->confidence > 0 && f->confidence <= 1);
  assert_true(fabs(f->predicted_gain_pct - 100 * (hone_amdahl(f->p, f->s) - 1)) < 1e-6);
}
