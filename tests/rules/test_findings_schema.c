/* What hone prints as JSON is what its schema files say: every finding of every fixture in both languages,
 * against docs/reference/schema/findings-v1.schema.json. The checker knows the words of JSON Schema that
 * these files use, and fails on any other. */
#include "rules/fixture.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *schema_root;

static bool has_type(const json_t *v, const char *type) {
  return (strcmp(type, "object") == 0 && json_is_object(v)) ||
         (strcmp(type, "array") == 0 && json_is_array(v)) ||
         (strcmp(type, "string") == 0 && json_is_string(v)) ||
         (strcmp(type, "number") == 0 && json_is_number(v)) ||
         (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
         (strcmp(type, "null") == 0 && json_is_null(v));
}

static bool check(const json_t *v, const json_t *schema, const char *where);

static bool wrong(const char *where, const char *word) {
  print_message("%s: '%s' is not met\n", where, word);
  return false;
}

static bool one_of(const json_t *v, const json_t *list) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) if (json_equal(v, item)) return true;
  return false;
}

static bool type_fits(const json_t *v, const json_t *types) {
  size_t i;
  json_t *item;
  if (json_is_string(types)) return has_type(v, json_string_value(types));
  json_array_foreach(types, i, item) if (has_type(v, json_string_value(item))) return true;
  return false;
}

static bool members_fit(const json_t *v, const json_t *schema, const char *where) {
  const char *key;
  json_t *member;
  size_t i;
  json_t *name;
  json_t *properties = json_object_get(schema, "properties");
  json_array_foreach(
      json_object_get(schema, "required"), i,
      name) if (!json_object_get(v, json_string_value(name))) return wrong(where, json_string_value(name));
  json_object_foreach((json_t *)v, key, member) {
    json_t *own = json_object_get(properties, key);
    if (!own && json_is_false(json_object_get(schema, "additionalProperties"))) return wrong(where, key);
    if (own && !check(member, own, key)) return false;
  }
  return true;
}

static bool check(const json_t *v, const json_t *schema, const char *where) {
  static const char *const known[] = {
      "$schema", "$id",      "$defs",     "$ref",     "title",      "description",
      "type",    "const",    "enum",      "required", "properties", "additionalProperties",
      "items",   "minItems", "minLength", "minimum",  "maximum"};
  const char *word;
  json_t *rule;
  json_object_foreach((json_t *)schema, word, rule) {
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(known[i], word) == 0;
    if (!found) return wrong(where, word);
    if (strcmp(word, "$ref") == 0) {
      const char *name = strrchr(json_string_value(rule), '/') + 1;
      if (!check(v, json_object_get(json_object_get(schema_root, "$defs"), name), where)) return false;
    }
    bool ok = strcmp(word, "type") == 0        ? type_fits(v, rule)
              : strcmp(word, "const") == 0     ? json_equal(v, rule)
              : strcmp(word, "enum") == 0      ? one_of(v, rule)
              : strcmp(word, "minItems") == 0  ? json_array_size(v) >= (size_t)json_integer_value(rule)
              : strcmp(word, "minLength") == 0 ? json_string_length(v) >= (size_t)json_integer_value(rule)
              : strcmp(word, "minimum") == 0   ? json_number_value(v) >= json_number_value(rule)
              : strcmp(word, "maximum") == 0   ? json_number_value(v) <= json_number_value(rule)
                                               : true;
    if (!ok) return wrong(where, word);
    if (strcmp(word, "items") == 0) {
      size_t i;
      json_t *item;
      json_array_foreach(v, i, item) if (!check(item, rule, where)) return false;
    }
  }
  return !json_is_object(v) || members_fit(v, schema, where);
}

/* ---- the documents ---- */

static hone_status collect(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  char **text = user;
  size_t old = *text ? strlen(*text) : 0;
  *text = realloc(*text, old + length + 1);
  memcpy(*text + old, data, length);
  (*text)[old + length] = 0;
  return HONE_OK;
}

static json_t *document(const fixture *f) {
  hone_error error = {0};
  char *text = NULL;
  hone_report_input in = {.baseline = f->profile, .findings = f->findings};
  assert_int_equal(hone_report_write(&in, HONE_REPORT_FINDINGS_JSON, collect, &text, &error), HONE_OK);
  json_t *o = json_loads(text, 0, NULL);
  assert_non_null(o);
  free(text);
  return o;
}

static void ill(fixture *f) {
  f->gap_ms = 0.4;
  f->post_ms = 9;
  f->h2d_ms = 8;
  f->pageable = true;
  f->meta.threads = 1;
  f->meta.dropped_spans = 3;
  f->layers[0].cin = 3;
  f->layers[0].ms = 9;
  fixture_add(f, "norm", "LayerNormalization", 9)->mb = 0.9 * 20 * 9;
}

static void findings_fit_their_schema(void **state) {
  (void)state;
  for (int language = 0; language < 2; language++)
    for (int sick = 0; sick < 2; sick++) {
      fixture f = fixture_healthy();
      f.language = (hone_language)language;
      if (sick) ill(&f);
      fixture_diagnose(&f);
      json_t *o = document(&f);
      assert_true(json_array_size(json_object_get(o, "findings")) >= (sick ? 5u : 0u));
      assert_true(check(o, schema_root, "document"));
      json_decref(o);
      fixture_free(&f);
    }
}

/* The checker is no yes-man. */
static void wrong_documents_do_not_fit(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill(&f);
  fixture_diagnose(&f);
  static const char *const members[] = {"id", "evidence", "p", "category", "commands", "gain_low_pct"};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    json_t *o = document(&f), *first = json_array_get(json_object_get(o, "findings"), 0);
    json_object_del(first, members[i]);
    assert_false(check(o, schema_root, "document"));
    json_object_set_new(first, members[i], json_integer(-7));
    assert_false(check(o, schema_root, "document"));
    json_decref(o);
  }
  json_t *o = document(&f);
  json_object_set_new(o, "surprise", json_true());
  assert_false(check(o, schema_root, "document"));
  json_decref(o);
  fixture_free(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(findings_fit_their_schema),
                                     cmocka_unit_test(wrong_documents_do_not_fit)};
  schema_root = json_load_file("docs/reference/schema/findings-v1.schema.json", 0, NULL);
  if (!schema_root) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(schema_root);
  return failed;
}
