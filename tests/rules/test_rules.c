/* Every rule: one profile on which it must fire, one close to it on which it must keep quiet. */
#include "rules/illnesses.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_rule_has_a_case(void **state) {
  (void)state;
  static const char *const rules[] = {
#define RULE(name) #name,
#include "insight/diagnose/rules.def"
#undef RULE
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    bool found = false;
    for (size_t k = 0; k < illness_count; k++) found = found || strcmp(rules[i], illnesses[k].rule) == 0;
    if (!found) fail_msg("rule %s has no fixture", rules[i]);
  }
}

static void rules_fire(void **state) {
  (void)state;
  for (size_t i = 0; i < illness_count; i++) {
    fixture f = fixture_healthy();
    illnesses[i].ill(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, illnesses[i].rule);
    if (!finding) fail_msg("%s must fire and did not", illnesses[i].rule);
    fixture_complete(finding);
    fixture_free(&f);
  }
}

static void rules_stay_quiet(void **state) {
  (void)state;
  for (size_t i = 0; i < illness_count; i++) {
    fixture f = fixture_healthy();
    illnesses[i].nearly(&f);
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, illnesses[i].rule);
    if (finding) fail_msg("%s must stay quiet and said: %s", illnesses[i].rule, finding->title);
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
  for (size_t i = 0; i < illness_count; i++) {
    fixture f = fixture_healthy();
    illnesses[i].ill(&f);
    fixture_diagnose(&f);
    assert_true(f.findings->count > 0);
    if (strncmp(f.findings->items[0].id, illnesses[i].rule, strlen(illnesses[i].rule)) != 0)
      fail_msg("%s was planted, but %s comes first", illnesses[i].rule, f.findings->items[0].id);
    fixture_free(&f);
  }
}

static void works_without_roofs(void **state) {
  (void)state;
  for (size_t i = 0; i < illness_count; i++) {
    fixture f = fixture_healthy();
    f.no_roofs = true;
    illnesses[i].ill(&f);
    fixture_diagnose(&f);
    for (size_t k = 0; k < f.findings->count; k++) fixture_complete(&f.findings->items[k]);
    fixture_free(&f);
  }
}

static bool ascii(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text > 127) return false;
  return true;
}

/* Every text of every finding has a Chinese form, and the same finding comes out in both languages. */
static void chinese_everywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < illness_count; i++) {
    fixture en = fixture_healthy(), zh = fixture_healthy();
    illnesses[i].ill(&en);
    illnesses[i].ill(&zh);
    zh.language = HONE_LANGUAGE_ZH;
    fixture_diagnose(&en);
    fixture_diagnose(&zh);
    assert_int_equal(en.findings->count, zh.findings->count);
    for (size_t k = 0; k < zh.findings->count; k++) {
      const hone_finding *a = &en.findings->items[k], *b = &zh.findings->items[k];
      assert_string_equal(a->id, b->id);
      assert_true(a->predicted_gain_pct == b->predicted_gain_pct);
      if (!ascii(a->title) || !ascii(a->cause) || !ascii(a->s_basis))
        fail_msg("not English: %s, %s, %s", a->title, a->cause, a->s_basis);
      if (ascii(b->title) || ascii(b->cause) || ascii(b->s_basis))
        fail_msg("not Chinese: %s, %s, %s", b->title, b->cause, b->s_basis);
      assert_int_equal(a->evidence_count, b->evidence_count);
      for (size_t e = 0; e < b->evidence_count; e++) {
        assert_string_equal(a->evidence[e].name, b->evidence[e].name); /* programs read this one */
        assert_true(ascii(a->evidence[e].label));
      }
    }
    fixture_free(&en);
    fixture_free(&zh);
  }
}

/* A profile without what a rule needs is no reason to speak. */
static void nothing_is_claimed_without_facts(void **state) {
  (void)state;
  static const char *const by_roof[] = {"memory_bound",   "latency_bound",  "missing_batch",
                                        "conv_dominated", "small_channels", "misaligned_channels"};
  for (size_t i = 0; i < illness_count; i++) {
    fixture f = fixture_healthy();
    illnesses[i].ill(&f);
    f.no_roofs = true;
    fixture_diagnose(&f);
    for (size_t k = 0; k < f.findings->count; k++)
      if (f.findings->items[k].basis == HONE_BASIS_ROOFLINE)
        fail_msg("a roofline without roofs: %s", f.findings->items[k].title);
    for (size_t k = 0; k < sizeof by_roof / sizeof *by_roof && !f.counter_count; k++) {
      const hone_finding *found = fixture_finding(&f, by_roof[k]);
      /* Other people's figures, and bytes, are offered as such. */
      if (found && (found->category != HONE_CATEGORY_TRADE || found->basis == HONE_BASIS_MEASURED))
        fail_msg("%s without roofs: %s", by_roof[k], found->title);
    }
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule_has_a_case),
      cmocka_unit_test(rules_fire),
      cmocka_unit_test(rules_stay_quiet),
      cmocka_unit_test(healthy_is_no_finding),
      cmocka_unit_test(first_finding_names_the_illness),
      cmocka_unit_test(works_without_roofs),
      cmocka_unit_test(chinese_everywhere),
      cmocka_unit_test(nothing_is_claimed_without_facts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
