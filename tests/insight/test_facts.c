/* facts v1: building, round trip through JSON, hostile JSON, running out of memory. */
#include "base/mem.h"
#include "insight/sample.h"

#include <hone/insight.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void round_trip(void **state) {
  (void)state;
  hone_error error = {0};
  char *first = NULL, *second = NULL;
  size_t n, m;
  hone_facts *facts = sample_facts(0), *again = NULL;
  assert_int_equal(hone_facts_check(facts, &error), HONE_OK);
  assert_int_equal(hone_facts_to_json(facts, &first, &n, &error), HONE_OK);
  assert_int_equal(hone_facts_from_json(first, n, &again, &error), HONE_OK);
  assert_int_equal(hone_facts_to_json(again, &second, &m, &error), HONE_OK);
  assert_int_equal(n, m);
  assert_memory_equal(first, second, n);
  free(first);
  free(second);
  hone_facts_destroy(facts);
  hone_facts_destroy(again);
}

static void strings_survive(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = hone_facts_create(), *again = NULL;
  hone_node_fact node = {
      .name = "a\"b\\c\n\t<&>\x01\xff\xe2\x80\xa8\xf0\x9f\x98\x80", .op_type = "Conv", .step = -1};
  hone_facts_add_node(facts, &node);
  char *text;
  size_t n, count;
  assert_int_equal(hone_facts_to_json(facts, &text, &n, &error), HONE_OK);
  assert_null(strchr(text, '<'));
  assert_int_equal(hone_facts_from_json(text, n, &again, &error), HONE_OK);
  const hone_node_fact *read = hone_facts_nodes(again, &count);
  assert_int_equal(count, 1);
  /* The byte that is no UTF-8 became the replacement character; all else is as it was. */
  assert_string_equal(read->name, "a\"b\\c\n\t<&>\x01\xef\xbf\xbd\xe2\x80\xa8\xf0\x9f\x98\x80");
  free(text);
  hone_facts_destroy(facts);
  hone_facts_destroy(again);
}

static void refused(const char *text, hone_status expected) {
  hone_error error = {0};
  hone_facts *facts = NULL;
  hone_status status = hone_facts_from_json(text, strlen(text), &facts, &error);
  if (status != expected) fail_msg("%s: status %d instead of %d", text, status, expected);
  assert_null(facts);
  assert_true(error.what[0]);
}

static void hostile_json(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "[",
      "null",
      "[]",
      "{}",
      "7",
      "<html>",
      "{\"schema\":\"hone facts\"}",
      "{\"schema\":7,\"version\":1}",
      "{\"schema\":\"hone facts\",\"version\":0}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":{}}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[7]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"meta\":[]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"meta\":{\"model\":7}}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"nonsense\"}]}",
      "{\"schema\":\"hone "
      "facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"kernel\",\"start_ns\":5,\"end_ns\":4}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"kernel\",\"step\":0}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"kernel\",\"parent\":9}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":2,\"kind\":\"kernel\"}]}",
      "{\"schema\":\"hone "
      "facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"kernel\",\"start_ns\":9223372036854775807}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"nodes\":[0]}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"nodes\":[-1]}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"flops\":-5}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"alternatives\":[[]]}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"nodes\":[{\"fate\":\"executed\",\"step\":3}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"roofs\":[{\"gflops\":1}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"counters\":[{\"name\":\"x\",\"step\":1}]}",
      "{\"schema\":\"hone facts\",\"version\":1} trailing"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused(bad[i], HONE_ERROR_INPUT);
  refused("{\"schema\":\"hone facts\",\"version\":2}", HONE_ERROR_UNSUPPORTED);
}

static void deep_nesting_is_an_error(void **state) {
  (void)state;
  enum { DEPTH = 1000000 };
  char *text = malloc(DEPTH + 1);
  assert_non_null(text);
  memset(text, '[', DEPTH);
  text[DEPTH] = 0;
  refused(text, HONE_ERROR_INPUT);
  free(text);
}

static void unknown_fields_are_ignored(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = NULL;
  const char *text = "{\"schema\":\"hone "
                     "facts\",\"version\":1,\"future\":{\"a\":[1]},\"spans\":[{\"id\":1,\"kind\":\"kernel\","
                     "\"later\":true}]}";
  assert_int_equal(hone_facts_from_json(text, strlen(text), &facts, &error), HONE_OK);
  hone_facts_destroy(facts);
}

/* Any truncation of a valid file is one error and no crash; the damage is done at every place of a small
 * file. */
static void truncated_and_damaged(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = hone_facts_create(), *read = NULL;
  int32_t node = hone_facts_add_node(facts, &(hone_node_fact){.name = "n", .op_type = "Conv", .step = 0});
  hone_facts_add_step(facts,
                      &(hone_step_fact){.name = "s", .nodes = &node, .node_count = 1, .anchor_node = 0});
  hone_facts_add_span(facts, &(hone_span){.start_ns = 1, .end_ns = 2, .step = 0, .kind = HONE_SPAN_KERNEL});
  char *text;
  size_t n;
  assert_int_equal(hone_facts_to_json(facts, &text, &n, &error), HONE_OK);
  for (size_t i = 0; i + 2 < n; i++)
    assert_int_not_equal(hone_facts_from_json(text, i, &read, &error), HONE_OK);
  for (size_t i = 0; i < n; i++) {
    char was = text[i];
    text[i] = (char)(was ^ 0x15);
    if (hone_facts_from_json(text, n, &read, &error) == HONE_OK) hone_facts_destroy(read);
    text[i] = was;
  }
  free(text);
  hone_facts_destroy(facts);
}

static void buffer_keeps_whole_runs(void **state) {
  (void)state;
  hone_error error = {0};
  hone_span_buffer buffer;
  assert_int_equal(hone_span_buffer_init(&buffer, 5, &error), HONE_OK);
  for (int run = 0; run < 2; run++) {
    hone_span_push(&buffer, HONE_SPAN_KERNEL, 0, run, -1, run * 100 + 10, run * 100 + 20, 0, "a");
    hone_span_push(&buffer, HONE_SPAN_KERNEL, 0, run, -1, run * 100 + 30, run * 100 + 40, 0, "b");
    hone_span_push(&buffer, HONE_SPAN_RUN, 0, run, -1, run * 100, run * 100 + 50, 0, NULL);
  }
  assert_int_equal(buffer.dropped, 1);
  hone_facts *facts = hone_facts_create();
  hone_facts_add_buffer(facts, &buffer);
  hone_facts_set_meta(facts, &(hone_facts_meta){.model = "m"});
  assert_true(hone_facts_get_meta(facts)->dropped_spans == 1);
  size_t n;
  const hone_span *spans = hone_facts_spans(facts, &n);
  assert_int_equal(n, 5);
  assert_int_equal(spans[0].parent, 3);
  assert_int_equal(spans[1].parent, 3);
  assert_int_equal(spans[3].parent, 0);
  hone_profile *profile;
  assert_int_equal(hone_profile_create(facts, NULL, &profile, &error), HONE_OK);
  assert_int_equal(profile->iterations, 1); /* the run that was cut off does not count */
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
  hone_span_buffer_free(&buffer);
}

static hone_status swallow(void *user, const char *data, size_t length, hone_error *error) {
  (void)user, (void)data, (void)length, (void)error;
  return HONE_OK;
}

/* A whole life: facts, profile, findings, every report. */
static hone_status live(hone_error *error) {
  hone_facts *facts = hone_facts_create();
  hone_profile *profile = NULL;
  hone_findings *findings = NULL;
  hone_status status = HONE_ERROR_MEMORY;
  if (!facts) return status;
  for (int i = 0; i < 3; i++) {
    int32_t node = hone_facts_add_node(
        facts, &(hone_node_fact){.name = i ? "x" : "y", .op_type = i ? "Relu" : "Conv", .step = i});
    hone_alternative refused = {"t", "r", -1};
    hone_facts_add_step(facts, &(hone_step_fact){.name = i ? "x" : "y",
                                                 .op_type = i ? "Relu" : "Conv",
                                                 .nodes = &node,
                                                 .node_count = 1,
                                                 .anchor_node = node,
                                                 .flops = 100,
                                                 .bytes = 1000,
                                                 .alternatives = &refused,
                                                 .alternative_count = 1});
    hone_facts_add_span(facts, &(hone_span){.kind = HONE_SPAN_KERNEL,
                                            .step = i,
                                            .start_ns = i * 1000000,
                                            .end_ns = i * 1000000 + 500000});
  }
  hone_facts_add_wall(facts, 0, 2600000);
  status = hone_facts_check(facts, error);
  if (!status) status = hone_profile_create(facts, NULL, &profile, error);
  if (!status) status = hone_diagnose(profile, NULL, &findings, error);
  if (!status) status = hone_findings_measure(findings, profile, profile, error);
  hone_report_input input = {.baseline = profile, .optimized = profile, .findings = findings};
  for (int format = 0; format <= HONE_REPORT_FINDINGS_JSON && !status; format++)
    status = hone_report_write(&input, (hone_report_format)format, swallow, NULL, error);
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
  return status;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  hone_error error = {0};
  uint64_t before = hn_mem_count();
  assert_int_equal(live(&error), HONE_OK);
  uint64_t total = hn_mem_count() - before;
  assert_true(total > 50);
  for (uint64_t i = 1; i <= total; i++) {
    error = (hone_error){0};
    hn_mem_fail_after(i);
    hone_status status = live(&error);
    hn_mem_fail_after(0);
    if (status != HONE_OK && status != HONE_ERROR_MEMORY)
      fail_msg("allocation %llu: status %d", (unsigned long long)i, status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),
      cmocka_unit_test(strings_survive),
      cmocka_unit_test(hostile_json),
      cmocka_unit_test(deep_nesting_is_an_error),
      cmocka_unit_test(unknown_fields_are_ignored),
      cmocka_unit_test(truncated_and_damaged),
      cmocka_unit_test(buffer_keeps_whole_runs),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
