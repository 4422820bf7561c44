#include "importers/timeline_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

hone_facts *import_text(const char *name, const char *text) {
  hone_facts *facts = NULL;
  hone_error error = {0};
  hone_status status = hone_import_memory(name, text, strlen(text), NULL, &facts, &error);
  if (status) fail_msg("%s: %s (%s)", name, error.what, error.where);
  return facts;
}

hone_error refuse_text(const char *name, const char *text, hone_status status) {
  hone_facts *facts = NULL;
  hone_error error = {0};
  assert_int_equal(hone_import_memory(name, text, strlen(text), NULL, &facts, &error), status);
  assert_null(facts);
  assert_true(error.what[0]);
  return error;
}

double span_ms(const hone_facts *facts, hone_span_kind kind, bool in_runs) {
  size_t n;
  const hone_span *s = hone_facts_spans(facts, &n);
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (s[i].kind == kind && (s[i].iteration >= 0) == in_runs)
      sum += (double)(s[i].end_ns - s[i].start_ns) / 1e6;
  return sum;
}

size_t span_count(const hone_facts *facts, hone_span_kind kind, bool in_runs) {
  size_t n, count = 0;
  const hone_span *s = hone_facts_spans(facts, &n);
  for (size_t i = 0; i < n; i++) count += s[i].kind == kind && (s[i].iteration >= 0) == in_runs;
  return count;
}

const hone_step_fact *step_of_span(const hone_facts *facts, const hone_span *span) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(facts, &n);
  assert_true(span->step >= 0 && (size_t)span->step < n);
  return &steps[span->step];
}

const hone_span *find_span(const hone_facts *facts, const char *name) {
  size_t n, steps;
  const hone_span *s = hone_facts_spans(facts, &n);
  const hone_step_fact *table = hone_facts_steps(facts, &steps);
  for (size_t i = 0; i < n; i++) {
    const char *own = s[i].name ? s[i].name : s[i].step >= 0 ? table[s[i].step].name : "";
    if (strncmp(own, name, strlen(name)) == 0) return &s[i];
  }
  fail_msg("no span '%s'", name);
  return NULL;
}

double counter(const hone_facts *facts, const char *name) {
  size_t n;
  const hone_counter *c = hone_facts_counters(facts, &n);
  for (size_t i = 0; i < n; i++)
    if (c[i].step < 0 && strcmp(c[i].name, name) == 0) return c[i].value;
  return -1;
}

const char *unmeasured(const hone_facts *facts, const char *what) {
  size_t n;
  const hone_note *note = hone_facts_unmeasured(facts, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(note[i].what, what) == 0) return note[i].text;
  return NULL;
}

hone_profile *sound_profile(const hone_facts *facts) {
  hone_profile *profile = NULL;
  hone_error error = {0};
  if (hone_profile_create(facts, NULL, &profile, &error)) fail_msg("%s (%s)", error.what, error.where);
  if (profile->doubt) fail_msg("%s", profile->doubt);
  return profile;
}
