/* docs/reference/schema/facts-v1.schema.json against what hone really writes: every document is valid, and
 * every member that is written is in the schema. The validator knows the words that the schema uses and
 * refuses others. */
#include "insight/filled.h"
#include "insight/sample.h"

#include <hone/hone.h>

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct checker {
  const json_t *root; /* the whole schema */
  bool strict;        /* members that the schema does not name are wrong */
  char fault[256];
} checker;

static bool wrong(checker *c, const char *path, const char *what) {
  if (!c->fault[0]) snprintf(c->fault, sizeof c->fault, "%s: %s", path, what);
  return false;
}

static bool is_type(const json_t *v, const char *type) {
  if (strcmp(type, "object") == 0) return json_is_object(v);
  if (strcmp(type, "array") == 0) return json_is_array(v);
  if (strcmp(type, "string") == 0) return json_is_string(v);
  if (strcmp(type, "integer") == 0) return json_is_integer(v);
  if (strcmp(type, "number") == 0) return json_is_number(v);
  if (strcmp(type, "boolean") == 0) return json_is_boolean(v);
  if (strcmp(type, "null") != 0) fail_msg("schema: unknown type %s", type);
  return json_is_null(v);
}

/* "#/properties/spans": what lies there. */
static const json_t *referred(const checker *c, const char *path) {
  char part[64];
  const json_t *at = path[0] == '#' ? c->root : NULL;
  for (path++; at && *path == '/'; path += strlen(part) + 1) {
    snprintf(part, sizeof part, "%.*s", (int)strcspn(path + 1, "/"), path + 1);
    at = json_object_get(at, part);
  }
  if (!at) fail_msg("schema: a $ref leads nowhere");
  return at;
}

static bool valid(checker *c, const json_t *schema, const json_t *v, const char *path) {
  const char *word;
  json_t *rule, *item;
  size_t i;
  bool ok = true;
  json_object_foreach((json_t *)schema, word, rule) {
    bool found = false;
    if (strcmp(word, "type") == 0) {
      if (json_is_string(rule)) found = is_type(v, json_string_value(rule));
      json_array_foreach(rule, i, item) found = found || is_type(v, json_string_value(item));
      if (!found) return wrong(c, path, "type");
    } else if (strcmp(word, "enum") == 0) {
      json_array_foreach(rule, i, item) found = found || json_equal(item, (json_t *)v);
      if (!found) return wrong(c, path, "enum");
    } else if (strcmp(word, "$ref") == 0) {
      ok = valid(c, referred(c, json_string_value(rule)), v, path) && ok;
    } else if (strcmp(word, "const") == 0) {
      if (!json_equal(rule, (json_t *)v)) return wrong(c, path, "const");
    } else if (strcmp(word, "minimum") == 0) {
      if (json_is_number(v) && json_number_value(v) < json_number_value(rule))
        return wrong(c, path, "minimum");
    } else if (strcmp(word, "required") == 0) {
      json_array_foreach(rule, i, item) if (!json_object_get(v, json_string_value(item))) ok =
          wrong(c, path, json_string_value(item));
    } else if (strcmp(word, "items") == 0) {
      json_array_foreach(v, i, item) ok = valid(c, rule, item, path) && ok;
    } else if (strcmp(word, "properties") == 0) {
      const char *key;
      json_object_foreach((json_t *)v, key, item) {
        char deeper[128];
        snprintf(deeper, sizeof deeper, "%.100s/%.24s", path, key);
        const json_t *next = json_object_get(rule, key);
        if (next)
          ok = valid(c, next, item, deeper) && ok;
        else if (c->strict)
          ok = wrong(c, deeper, "not in the schema");
      }
    } else if (word[0] != '$' && strcmp(word, "title") != 0 && strcmp(word, "description") != 0)
      fail_msg("schema: the test does not know '%s'", word);
  }
  return ok;
}

static json_t *load_schema(void) {
  json_error_t error;
  json_t *schema = json_load_file("docs/reference/schema/facts-v1.schema.json", 0, &error);
  if (!schema) fail_msg("the schema: %s at line %d", error.text, error.line);
  return schema;
}

static void expect_valid(const json_t *schema, json_t *document, const char *name) {
  checker c = {.root = schema, .strict = true};
  assert_non_null(document);
  if (!valid(&c, schema, document, "")) fail_msg("%s: %s", name, c.fault);
  json_decref(document);
}

static hone_status collect(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  *(json_t **)user = json_loadb(data, length, 0, NULL);
  return HONE_OK;
}

/* Facts, and the profile JSON with everything derived from them. */
static void expect_facts(const json_t *schema, const hone_facts *facts, const char *name) {
  hone_error error = {0};
  char *text = NULL;
  size_t length;
  json_t *document = NULL;
  hone_profile *profile = NULL;
  hone_findings *findings = NULL;
  assert_int_equal(hone_facts_to_json(facts, &text, &length, &error), HONE_OK);
  expect_valid(schema, json_loadb(text, length, 0, NULL), name);
  free(text);
  assert_int_equal(hone_profile_create(facts, NULL, &profile, &error), HONE_OK);
  assert_int_equal(hone_diagnose(profile, NULL, &findings, &error), HONE_OK);
  hone_report_input in = {.baseline = profile, .findings = findings};
  assert_int_equal(hone_report_write(&in, HONE_REPORT_PROFILE_JSON, collect, &document, &error), HONE_OK);
  expect_valid(schema, document, name);
  hone_findings_destroy(findings);
  hone_profile_destroy(profile);
}

static void test_own_runs(void **unused) {
  (void)unused;
  json_t *schema = load_schema();
  for (int level = 0; level <= 2; level += 2) {
    hone_facts *facts = sample_facts(level);
    expect_facts(schema, facts, "a run of hone");
    hone_facts_destroy(facts);
  }
  json_decref(schema);
}

/* Every member that there is. */
static void test_filled(void **unused) {
  (void)unused;
  static hn_fact_row rows[HN_FACTS_COUNT][FILLED_ROWS];
  filler filler = {0};
  hone_error error = {0};
  json_t *schema = load_schema();
  hone_facts *facts = filled_facts(&filler, rows);
  char *text = NULL;
  size_t length;
  assert_int_equal(hone_facts_to_json(facts, &text, &length, &error), HONE_OK);
  expect_valid(schema, json_loadb(text, length, 0, NULL), "facts in which everything is said");
  free(text);
  hone_facts_destroy(facts);
  hn_arena_free(&filler.arena);
  json_decref(schema);
}

static void test_imported(void **unused) {
  (void)unused;
  json_t *schema = load_schema();
  glob_t g;
  assert_int_equal(glob("tests/importers/golden/*.json", 0, NULL, &g), 0);
  for (size_t i = 0; i < g.gl_pathc; i++) {
    hone_facts *facts;
    hone_error error = {0};
    const char *path = g.gl_pathv[i];
    assert_int_equal(hone_import_files(&path, 1, NULL, &facts, &error), HONE_OK);
    expect_facts(schema, facts, path);
    hone_facts_destroy(facts);
  }
  assert_true(g.gl_pathc > 10);
  globfree(&g);
  json_decref(schema);
}

/* The schema refuses what the reader refuses. */
static void test_wrong(void **unused) {
  (void)unused;
  json_t *schema = load_schema();
  static const char *const bad[] = {
      "{}",
      "{\"schema\":\"hone facts\",\"version\":2}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":{}}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"name\":5}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"steps\":[{\"on_host\":1}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"nodes\":[{\"fate\":\"lost\"}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"dream\"}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"spans\":[{\"id\":1,\"kind\":\"run\",\"step\":-2}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"step_stats\":[{\"step\":-1}]}",
      "{\"schema\":\"hone facts\",\"version\":1,\"preview_steps\":[{\"timed_ms\":-1}]}",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    checker c = {.root = schema};
    hone_facts *facts = NULL;
    hone_error error = {0};
    json_t *document = json_loads(bad[i], 0, NULL);
    assert_non_null(document);
    if (valid(&c, schema, document, "")) fail_msg("the schema takes %s", bad[i]);
    if (hone_facts_from_json(bad[i], strlen(bad[i]), &facts, &error) == HONE_OK)
      fail_msg("the reader takes %s", bad[i]);
    json_decref(document);
  }
  /* Unknown members are no fault for readers. */
  checker c = {.root = schema};
  json_t *document = json_loads("{\"schema\":\"hone facts\",\"version\":1,\"later\":[{}]}", 0, NULL);
  assert_true(valid(&c, schema, document, ""));
  json_decref(document);
  json_decref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_runs), cmocka_unit_test(test_filled),
                                     cmocka_unit_test(test_imported), cmocka_unit_test(test_wrong)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
