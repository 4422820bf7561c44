/* What a finding names, which stand first, what joins what, and what is only a note. */
#include "rules/illnesses.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
  fixture_complete(finding);
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
  /* Reports mark what ran before and after it; neither is promised to become faster. */
  assert_int_equal(finding->beside_count, 2);
  assert_string_equal(finding->beside[0], "conv1");
  assert_string_equal(finding->beside[1], "conv2");
  assert_int_equal(finding->node_count, 0);
  fixture_free(&f);
  f = fixture_healthy();
  ill_gaps(&f);
  fixture_diagnose(&f);
  finding = fixture_finding(&f, "scheduling_gaps");
  assert_non_null(finding);
  assert_true(finding->beside_count >= 4);
  fixture_free(&f);
}

static void ranked_structure_first_then_gain(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill_slow_convolutions(&f);
  f.gap_ms = 0.6;
  ill_outlier(&f);
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
  ill_small_gaps(&f);
  fixture_diagnose(&f);
  assert_null(fixture_finding(&f, "scheduling_gaps"));
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_set(t, "idle_share", 3, &error), HONE_OK);
  assert_int_equal(hone_thresholds_set(t, "no_such", 3, &error), HONE_ERROR_USAGE);
  assert_int_equal(hone_thresholds_set(t, "idle_share", NAN, &error), HONE_ERROR_USAGE);
  hone_findings_destroy(f.findings);
  assert_int_equal(hone_diagnose(f.profile, &(hone_diagnose_options){.thresholds = t}, &f.findings, &error),
                   HONE_OK);
  assert_non_null(fixture_finding(&f, "scheduling_gaps"));
  hone_thresholds_destroy(t);
  fixture_free(&f);
}

/* -b changes nothing where the model fixes its batch: opening it comes first. */
static void fixed_batch_is_opened_first(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 2; fixed++) {
    fixture f = fixture_healthy();
    ill_batch_1(&f);
    if (fixed) fixture_counter(&f, "batch_fixed", -1, 1);
    fixture_diagnose(&f);
    const hone_finding *missing = fixture_finding(&f, "missing_batch");
    assert_non_null(missing);
    size_t opening = 0;
    for (size_t i = 0; i < missing->command_count; i++)
      opening += strstr(missing->commands[i], "--open-batch") != NULL;
    assert_int_equal(opening, fixed);
    fixture_free(&f);
  }
}

/* The kernel classes were given when the profile was made; findings go by the limits that were asked for. */
static void class_limits_override(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill_latency(&f);
  fixture_diagnose(&f);
  assert_non_null(fixture_finding(&f, "latency_bound"));
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_set(t, "roof_far", 0.001, &error), HONE_OK);
  hone_findings_destroy(f.findings);
  assert_int_equal(hone_diagnose(f.profile, &(hone_diagnose_options){.thresholds = t}, &f.findings, &error),
                   HONE_OK);
  assert_null(fixture_finding(&f, "latency_bound"));
  hone_thresholds_destroy(t);
  fixture_free(&f);
}

/* One root cause is named once: the copies that a fallback needs are not a second finding. */
static void consequences_join_their_cause(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill_pageable(&f);
  fixture_diagnose(&f);
  const hone_finding *finding = fixture_finding(&f, "pageable_copies");
  assert_non_null(finding);
  assert_null(fixture_finding(&f, "h2d_bound"));
  bool merged = false;
  for (size_t i = 0; i < finding->merged_count; i++)
    merged = merged || strcmp(finding->merged[i], "h2d_bound") == 0;
  assert_true(merged);
  assert_false(isnan(fixture_evidence(finding, "ceiling when stages overlap"))); /* came along */
  fixture_free(&f);
  /* A root that explains little of it takes nothing in. */
  f = fixture_healthy();
  ill_on_device(&f);
  f.h2d_ms = 6;
  fixture_layer *l = fixture_add(&f, "odd_op", "Einsum", 0.8);
  l->on_host = true;
  fixture_diagnose(&f);
  assert_non_null(fixture_finding(&f, "host_fallback"));
  assert_non_null(fixture_finding(&f, "h2d_bound"));
  fixture_free(&f);
}

/* An operator that stands out for a reason that has a name is found by that name; for another reason, or at
 * another place, it keeps its own. */
static void outliers_join_what_explains_them(void **state) {
  (void)state;
  static const struct {
    double slower;     /* than the convolutions beside it */
    double over_model; /* of the same one, or of `other` */
    int other;
    bool joins;
  } table[] = {{5, 10, 0, true}, {1.3, 12, 0, false}, {5, 12, 2, false}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    fixture f = fixture_healthy();
    ill_odd_channels(&f);
    f.layers[0].ms *= table[i].slower / 2.5;
    for (int k = 0; k < f.count; k++) f.layers[k].model_ms = f.layers[k].ms / 2;
    fixture_layer *l = &f.layers[table[i].other];
    l->model_ms = l->ms / table[i].over_model;
    fixture_diagnose(&f);
    const hone_finding *channels = fixture_finding(&f, "misaligned_channels");
    const hone_finding *outlier = fixture_finding(&f, "outlier_operator");
    assert_non_null(channels);
    assert_int_equal(outlier == NULL, table[i].joins);
    if (table[i].joins) {
      assert_ptr_equal(channels, &f.findings->items[0]);
      bool merged = false;
      for (size_t k = 0; k < channels->merged_count; k++)
        merged = merged || strcmp(channels->merged[k], "outlier_operator:conv0") == 0;
      assert_true(merged);
      assert_false(isnan(fixture_evidence(channels, "over its cost model")));
    }
    fixture_free(&f);
  }
}

/* Few operators have no usual one: an outlier stands out from each of the others. What it makes of the
 * convolutions as a whole is its doing, unless they are slow without it. */
static void outlier_among_few(void **state) {
  (void)state;
  for (int others = 0; others < 3;
       others++) { /* near their models; one of them as far off; slow all together */
    fixture f = fixture_healthy();
    f.count = others == 2 ? 5 : 3;
    f.layers[1].ms *= others == 2 ? 5 : 12;
    for (int i = 0; i < f.count; i++) {
      f.layers[i].model_ms = 1;
      if (others == 2) f.layers[i].gflop *= 0.1;
    }
    if (others == 1) f.layers[2].model_ms = 0.1;
    fixture_diagnose(&f);
    const hone_finding *outlier = fixture_finding(&f, "outlier_operator");
    assert_int_equal(outlier != NULL, others != 1);
    if (others == 0) assert_ptr_equal(outlier, &f.findings->items[0]);
    assert_int_equal(fixture_finding(&f, "conv_dominated") != NULL, others != 0);
    fixture_free(&f);
  }
}

/* A drift within seconds is a note: a neighbour does that, too. One of a longer record comes first. */
static void brief_drift_is_a_note(void **state) {
  (void)state;
  for (int minutes = 0; minutes < 2; minutes++) {
    fixture f = fixture_healthy();
    ill_drift(&f);
    ill_odd_channels(&f);
    for (int i = 0; i < f.count; i++) f.layers[i].ms *= minutes ? 50 : 1;
    fixture_diagnose(&f);
    const hone_finding *found = fixture_finding(&f, "latency_drift");
    assert_non_null(found);
    assert_int_equal(found->category, minutes ? HONE_CATEGORY_STRUCTURAL : HONE_CATEGORY_NOTE);
    assert_int_equal(found->predicted_gain_pct > 0, minutes);
    assert_non_null(strstr(found->commands[0], minutes ? "hone bench" : "--duration 10m"));
    assert_int_equal(found == &f.findings->items[0], minutes);
    fixture_free(&f);
  }
}

/* Neighbours come first while they slow the typical run, with a way to measure without them; once few runs
 * are interrupted they are a note. */
static void neighbours_of_a_steady_run_are_a_note(void **state) {
  (void)state;
  static const struct {
    double switches, jitter, drift;
    bool note;
  } c[] = {{300, 0, 0, false},   /* every run was interrupted */
           {3, 0, 0, true},      /* some were, and are hardly longer */
           {3, 3, 0, true},      /* some were, and are much longer */
           {3, 0, 0.03, false}}; /* the typical run takes far longer than the best */
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int language = 0; language < 2; language++) {
      fixture f = fixture_healthy();
      f.language = language ? HONE_LANGUAGE_ZH : HONE_LANGUAGE_EN;
      f.drift = c[i].drift;
      for (int k = 0; k < f.count; k++) f.layers[k].jitter = c[i].jitter;
      fixture_counter(&f, "others_cpu", -1, 45);
      fixture_counter(&f, "run_delay", -1, 35);
      fixture_counter(&f, "involuntary_switches", -1, c[i].switches);
      fixture_diagnose(&f);
      const hone_finding *found = fixture_finding(&f, "busy_neighbour");
      assert_non_null(found);
      assert_int_equal(found->category, c[i].note ? HONE_CATEGORY_NOTE : HONE_CATEGORY_STRUCTURAL);
      assert_int_equal(found->predicted_gain_pct > 0, !c[i].note);
      bool waits = false;
      for (size_t k = 0; k < found->command_count; k++)
        waits |= strstr(found->commands[k], "--quiet-wait") != NULL;
      assert_true(waits);
      fixture_free(&f);
    }
}

/* A run in which everything scatters is a note about the measurement: what is wrong with the network comes
 * first. */
static void noise_is_a_note(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill_odd_channels(&f);
  for (int i = 0; i < f.count; i++) f.layers[i].jitter = 3;
  fixture_diagnose(&f);
  const hone_finding *noise = fixture_finding(&f, "outlier_operator");
  assert_non_null(noise);
  assert_int_equal(noise->category, HONE_CATEGORY_NOTE);
  assert_true(noise->predicted_gain_pct == 0);
  assert_ptr_equal(fixture_finding(&f, "misaligned_channels"), &f.findings->items[0]);
  fixture_free(&f);
  /* All scatter, but one loses most of what is lost. */
  f = fixture_healthy();
  for (int i = 0; i < f.count; i++) f.layers[i].jitter = i == 1 ? 7 : 1.6;
  fixture_diagnose(&f);
  assert_string_equal(f.findings->items[0].id, "outlier_operator:conv1");
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(near_misses_name_pass_and_reason),
      cmocka_unit_test(gap_is_located),
      cmocka_unit_test(ranked_structure_first_then_gain),
      cmocka_unit_test(thresholds_override),
      cmocka_unit_test(class_limits_override),
      cmocka_unit_test(fixed_batch_is_opened_first),
      cmocka_unit_test(consequences_join_their_cause),
      cmocka_unit_test(outliers_join_what_explains_them),
      cmocka_unit_test(brief_drift_is_a_note),
      cmocka_unit_test(neighbours_of_a_steady_run_are_a_note),
      cmocka_unit_test(noise_is_a_note),
      cmocka_unit_test(outlier_among_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
