/* Every rule: one profile on which it must fire, one close to it on which it must keep quiet. */
#include "rules/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct rule_case {
  const char *rule;
  void (*ill)(fixture *f);
  void (*nearly)(fixture *f); /* just short of ill */
} rule_case;

/* ---- the illnesses ---- */

static void scale(fixture *f, double factor) {
  for (int i = 0; i < 5; i++) f->layers[i].ms *= factor;
}

static void slow_convolutions(fixture *f) { scale(f, 2); }
static void fair_convolutions(fixture *f) { scale(f, 1.1); }

static void memory(fixture *f) { fixture_add(f, "norm", "LayerNormalization", 6)->mb = 0.9 * 20 * 6; }
static void little_memory(fixture *f) { fixture_add(f, "norm", "LayerNormalization", 1)->mb = 0.9 * 20; }

static void gaps(fixture *f) { f->gap_ms = 0.3; }
static void small_gaps(fixture *f) { f->gap_ms = 0.1; }

static void unfused(fixture *f) {
  f->meta.opt_level = 0;
  fixture_add(f, "c", "Conv", 1)->mb = 4;
  fixture_add(f, "bn", "BatchNormalization", 0.5)->mb = 8;
  fixture_add(f, "relu", "Relu", 0.5)->mb = 8;
}
static void fused(fixture *f) {
  unfused(f);
  /* The same operators where they cannot ride along: after a pooling. */
  f->layers[f->count - 3].type = "MaxPool";
}

static void one_thread(fixture *f) { f->meta.threads = 1; }
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

static void outlier(fixture *f) { f->layers[1].jitter = 3; }
static void steady(fixture *f) { f->layers[1].jitter = 1.2; }

static void channels(fixture *f, int cin, int cout) {
  f->layers[0].cin = cin;
  f->layers[0].cout = cout;
  f->layers[0].ms *= 2.5;
}
static void few_channels(fixture *f) { channels(f, 3, 64); }
static void enough_channels(fixture *f) { channels(f, 16, 64); }
static void odd_channels(fixture *f) { channels(f, 58, 255); }
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

static void d2h(fixture *f) { f->d2h_ms = 5; }
static void little_d2h(fixture *f) { f->d2h_ms = 1; }

static const rule_case cases[] = {
    {"conv_dominated", slow_convolutions, fair_convolutions},
    {"memory_bound", memory, little_memory},
    {"scheduling_gaps", gaps, small_gaps},
    {"unfused_pattern", unfused, fused},
    {"single_thread", one_thread, one_core},
    {"layout_conversions", ping_pong, edge_only},
    {"outlier_operator", outlier, steady},
    {"small_channels", few_channels, enough_channels},
    {"misaligned_channels", odd_channels, even_channels},
    {"reference_fallback", reference, tiny_reference},
    {"host_fallback", on_host, tiny_on_host},
    {"slow_d2h", d2h, little_d2h},
    {"dynamic_shapes", unknown_shape, known_shape},
    {"slow_pre", pre, little_pre},
    {"slow_post", post, little_post},
    {"h2d_bound", h2d, little_h2d},
};

/* ---- the tests ---- */

static void every_rule_has_a_case(void **state) {
  (void)state;
  static const char *const rules[] = {
#define RULE(name) #name,
#include "insight/diagnose/rules.def"
#undef RULE
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    bool found = false;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
      found = found || strcmp(rules[i], cases[k].rule) == 0;
    if (!found) fail_msg("rule %s has no fixture", rules[i]);
  }
}

/* What every finding owes its reader. */
static void check_complete(const hone_finding *f) {
  assert_true(f->title && *f->title);
  assert_true(f->subject && *f->subject);
  assert_true(f->cause && *f->cause);
  assert_true(f->evidence_count >= 2);
  for (size_t i = 0; i < f->evidence_count; i++) {
    assert_true(f->evidence[i].source && *f->evidence[i].source);
    assert_true(isfinite(f->evidence[i].value));
  }
  assert_true(f->command_count >= 1);
  for (size_t i = 0; i < f->command_count; i++) {
    assert_true(strncmp(f->commands[i], "hone ", 5) == 0);
    assert_non_null(strstr(f->commands[i], "m.onnx"));
  }
  assert_true(f->p > 0 && f->p <= 1);
  assert_true(f->s > 1);
  assert_true(f->s_basis && *f->s_basis);
  assert_true(f->s_low >= 1 && f->s_low <= f->s && f->s <= f->s_high);
  assert_true(f->gain_low_pct <= f->predicted_gain_pct && f->predicted_gain_pct <= f->gain_high_pct);
  assert_true(f->confidence > 0 && f->confidence <= 1);
  assert_true(fabs(f->predicted_gain_pct - 100 * (hone_amdahl(f->p, f->s) - 1)) < 1e-6);
}

static void rules_fire(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].ill(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, cases[i].rule);
    if (!finding) fail_msg("%s must fire and did not", cases[i].rule);
    check_complete(finding);
    fixture_free(&f);
  }
}

static void rules_stay_quiet(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].nearly(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, cases[i].rule);
    if (finding) fail_msg("%s must stay quiet and said: %s", cases[i].rule, finding->title);
    fixture_free(&f);
  }
}

static void healthy_is_no_finding(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  fixture_diagnose(&f);
  if (f.findings->count) fail_msg("healthy, but: %s", f.findings->items[0].title);
  fixture_free(&f);
}

/* Each illness alone must not be blamed on another rule first. */
static void first_finding_names_the_illness(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    cases[i].ill(&f);
    fixture_diagnose(&f);
    assert_true(f.findings->count > 0);
    if (strncmp(f.findings->items[0].id, cases[i].rule, strlen(cases[i].rule)) != 0)
      fail_msg("%s was planted, but %s comes first", cases[i].rule, f.findings->items[0].id);
    fixture_free(&f);
  }
}

static void works_without_roofs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f = fixture_healthy();
    f.no_roofs = true;
    cases[i].ill(&f);
    fixture_diagnose(&f);
    for (size_t k = 0; k < f.findings->count; k++) check_complete(&f.findings->items[k]);
    fixture_free(&f);
  }
}

static void near_misses_name_pass_and_reason(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  f.meta.opt_level = 0;
  f.near_miss_level = 2;
  fixture_add(&f, "act", "Relu", 1)->mb = 16;
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "unfused_pattern:fuse_it");
  assert_non_null(finding);
  assert_int_equal(finding->remedy, HONE_REMEDY_OPTIMIZER);
  assert_int_equal(finding->node_count, 2);
  check_complete(finding);
  fixture_free(&f);
  f = fixture_healthy();
  f.near_miss_level = -1;
  fixture_add(&f, "act", "Relu", 1)->mb = 16;
  fixture_diagnose(&f);
  finding = fixture_finding(&f, "unfused_pattern:fuse_it:refused");
  assert_non_null(finding);
  assert_non_null(strstr(finding->cause, "two consumers"));
  fixture_free(&f);
  /* Two products: whatever a pass wanted with them, neither disappears. */
  f = fixture_healthy();
  f.near_miss_level = -1;
  fixture_diagnose(&f);
  assert_null(fixture_finding(&f, "unfused_pattern"));
  fixture_free(&f);
}

static void gap_is_located(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  f.one_gap_ms = 4;
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "scheduling_gaps");
  assert_non_null(finding);
  assert_non_null(strstr(finding->subject, "conv2"));
  assert_true(fabs(fixture_evidence(finding, "longest gap") - 4.01) < 1e-3);
  fixture_free(&f);
}

static void ranked_structure_first_then_gain(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  slow_convolutions(&f);
  f.gap_ms = 0.6;
  outlier(&f);
  fixture_diagnose(&f);
  assert_true(f.findings->count >= 3);
  for (size_t i = 1; i < f.findings->count; i++) {
    const hone_finding *a = &f.findings->items[i - 1], *b = &f.findings->items[i];
    assert_true(a->category <= b->category);
    if (a->category == b->category) assert_true(a->severity <= b->severity);
    if (a->category == b->category && a->severity == b->severity)
      assert_true(a->predicted_gain_pct >= b->predicted_gain_pct);
  }
  fixture_free(&f);
}

static void thresholds_override(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  small_gaps(&f);
  fixture_diagnose(&f);
  assert_null(fixture_finding(&f, "scheduling_gaps"));
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_set(t, "idle_share", 3, &error), HONE_OK);
  assert_int_equal(hone_thresholds_set(t, "no_such", 3, &error), HONE_ERROR_USAGE);
  assert_int_equal(hone_thresholds_set(t, "idle_share", NAN, &error), HONE_ERROR_USAGE);
  hone_findings_destroy(f.findings);
  assert_int_equal(hone_diagnose(f.profile, &(hone_diagnose_options){.thresholds = t}, &f.findings, &error), HONE_OK);
  assert_non_null(fixture_finding(&f, "scheduling_gaps"));
  hone_thresholds_destroy(t);
  fixture_free(&f);
}

/* The prediction is scored against what really happened to the nodes it names. */
static void measured_gain_follows_the_nodes(void **state) {
  (void)state;
  fixture before = fixture_healthy(), after = fixture_healthy();
  unfused(&before);
  fixture_diagnose(&before);
  fixture_add(&after, "c", "Conv", 1)->mb = 4; /* bn and relu are gone */
  fixture_diagnose(&after);
  hone_error error = {0};
  assert_int_equal(hone_findings_measure(before.findings, before.profile, after.profile, &error), HONE_OK);
  const hone_finding *f = fixture_finding(&before, "unfused_pattern");
  assert_non_null(f);
  assert_true(f->measured);
  double saved = 1.0 / before.profile->closure.wall_ms;
  assert_true(fabs(f->measured_saved_pct - 100 * saved) < 0.5);
  assert_true(fabs(f->measured_gain_pct - 100 * (1 / (1 - saved) - 1)) < 0.5);
  double all = hone_findings_predict(before.findings, HONE_REMEDY_OPTIMIZER);
  assert_true(fabs(all - f->predicted_gain_pct) < 0.5);
  fixture_free(&before);
  fixture_free(&after);
}

static void amdahl(void **state) {
  (void)state;
  assert_true(fabs(hone_amdahl(0.2, 2) - 1 / 0.9) < 1e-12);
  assert_true(hone_amdahl(0, 10) == 1);
  assert_true(hone_amdahl(1, 4) == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule_has_a_case),
      cmocka_unit_test(rules_fire),
      cmocka_unit_test(rules_stay_quiet),
      cmocka_unit_test(healthy_is_no_finding),
      cmocka_unit_test(first_finding_names_the_illness),
      cmocka_unit_test(works_without_roofs),
      cmocka_unit_test(near_misses_name_pass_and_reason),
      cmocka_unit_test(gap_is_located),
      cmocka_unit_test(ranked_structure_first_then_gain),
      cmocka_unit_test(thresholds_override),
      cmocka_unit_test(measured_gain_follows_the_nodes),
      cmocka_unit_test(amdahl),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
