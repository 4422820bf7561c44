/* Every member of every table of facts.def, by the list itself: it survives writing and reading, is refused
 * when it is wrong, and is the struct's. A new table or member is covered without an edit here. */
#include "insight/filled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static char *written(const hone_facts *f) {
  hone_error error = {0};
  char *text = NULL;
  size_t length;
  if (hone_facts_to_json(f, &text, &length, &error) != HONE_OK) fail_msg("%s: %s", error.where, error.what);
  return text;
}

static hone_facts *read_back(const char *text) {
  hone_error error = {0};
  hone_facts *f = NULL;
  if (hone_facts_from_json(text, strlen(text), &f, &error) != HONE_OK)
    fail_msg("%s: %s", error.where, error.what);
  return f;
}

static void expect_same(hn_fact_id id, const void *a, const void *b) {
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++) {
    bool same = true;
    if (m->word == HN_FACT_TEXT)
      same = hn_fact_text(m, b) && strcmp(hn_fact_text(m, a), hn_fact_text(m, b)) == 0;
    else if (m->word == HN_FACT_NUMBER)
      same = hn_fact_number(m, a) == hn_fact_number(m, b);
    else if (m->store != HN_STORE_LIST)
      same = hn_fact_integer(m, a) == hn_fact_integer(m, b);
    else {
      size_t n, k;
      const char *x = hn_fact_list(m, a, &n), *y = hn_fact_list(m, b, &k);
      const size_t size = hn_fact_tables[m->of].size;
      same = n == FILLED_ROWS && k == n;
      if (m->word == HN_FACT_INDICES) same = same && memcmp(x, y, n * sizeof(int32_t)) == 0;
      for (size_t i = 0; same && m->word == HN_FACT_RECORDS && i < n; i++)
        expect_same(m->of, x + i * size, y + i * size);
    }
    if (!same) fail_msg("%s.%s is another one", hn_fact_tables[id].key, m->key);
  }
}

static void every_member_survives(void **state) {
  (void)state;
  static hn_fact_row rows[HN_FACTS_COUNT][FILLED_ROWS];
  filler filler = {0};
  hone_facts *facts = filled_facts(&filler, rows);
  char *first = written(facts);
  hone_facts *again = read_back(first);
  char *second = written(again);
  assert_string_equal(first, second);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    size_t n = 0;
    if (hn_fact_tables[id].layout == HN_FACT_RECORD) continue;
    const char *read = hn_facts_rows(again, id, &n);
    assert_int_equal(n, hn_fact_tables[id].layout == HN_FACT_OBJECT ? 1 : FILLED_ROWS);
    for (size_t i = 0; i < n; i++) expect_same(id, &rows[id][i], read + i * hn_fact_tables[id].size);
  }
  free(first);
  free(second);
  hone_facts_destroy(facts);
  hone_facts_destroy(again);
  hn_arena_free(&filler.arena);
}

/* What says nothing is left out, and means the same when it is missing. */
static void optional_members_are_left_out(void **state) {
  (void)state;
  filler filler = {0};
  hone_facts *facts = hone_facts_create();
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    hn_fact_row row;
    if (hn_fact_tables[id].layout == HN_FACT_RECORD) continue;
    fill_row(&filler, id, &row, 0, false);
    assert_true(hn_facts_put(facts, id, &row));
  }
  char *first = written(facts);
  json_t *root = json_loads(first, 0, NULL);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    if (hn_fact_tables[id].layout == HN_FACT_RECORD) continue;
    const json_t *row = json_object_get(root, hn_fact_tables[id].key);
    if (json_is_array(row)) row = json_array_get(row, 0);
    for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++)
      if (!json_object_get(row, m->key) != (m->when == HN_FACT_OPTIONAL))
        fail_msg("%s.%s is %s", hn_fact_tables[id].key, m->key,
                 m->when == HN_FACT_OPTIONAL ? "there" : "missing");
  }
  hone_facts *again = read_back(first);
  char *second = written(again);
  assert_string_equal(first, second);
  free(first);
  free(second);
  json_decref(root);
  hone_facts_destroy(facts);
  hone_facts_destroy(again);
  hn_arena_free(&filler.arena);
}

/* The document with another value of a member (NULL: without it) is one error with its place. */
static void refused(json_t *root, json_t *row, const char *place, const char *key, json_t *value) {
  hone_error error = {0};
  hone_facts *f = NULL;
  json_t *was = json_incref(json_object_get(row, key));
  if (value)
    json_object_set_new(row, key, value);
  else
    json_object_del(row, key);
  char *text = json_dumps(root, 0);
  if (hone_facts_from_json(text, strlen(text), &f, &error) != HONE_ERROR_INPUT)
    fail_msg("%s: a wrong %s is taken", place, key);
  assert_null(f);
  assert_string_equal(error.where, place);
  if (!strstr(error.what, key)) fail_msg("%s: '%s' does not name %s", place, error.what, key);
  json_object_set_new(row, key, was);
  free(text);
}

static void spoil_members(json_t *root, hn_fact_id id, json_t *row, const char *place) {
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++) {
    refused(root, row, place, m->key, json_object());
    if (m->when == HN_FACT_REQUIRED) refused(root, row, place, m->key, NULL);
    if (m->word == HN_FACT_ENUM) refused(root, row, place, m->key, json_string("?"));
    if (m->word == HN_FACT_NUMBER && m->low == 0) refused(root, row, place, m->key, json_real(-1));
    if (m->word == HN_FACT_INDICES) {
      refused(root, row, place, m->key, json_pack("[i]", FILLED_ROWS));
      refused(root, row, place, m->key, json_pack("[i]", -1));
    }
    if (m->word == HN_FACT_RECORDS) {
      refused(root, row, place, m->key, json_pack("[i]", 1));
      spoil_members(root, m->of, json_array_get(json_object_get(row, m->key), 0), place);
    }
    if (m->word != HN_FACT_INTEGER && m->word != HN_FACT_OWN_ID) continue;
    refused(root, row, place, m->key, json_integer(hn_fact_low(m) - 1));
    if (m->high < INT64_MAX) refused(root, row, place, m->key, json_integer(m->high + 1));
    if (m->of) refused(root, row, place, m->key, json_integer(FILLED_ROWS + 1));
  }
}

static void every_wrong_member_is_refused(void **state) {
  (void)state;
  static hn_fact_row rows[HN_FACTS_COUNT][FILLED_ROWS];
  filler filler = {0};
  hone_facts *facts = filled_facts(&filler, rows);
  char *text = written(facts);
  json_t *root = json_loads(text, 0, NULL);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    const hn_fact_table *t = &hn_fact_tables[id];
    if (t->layout == HN_FACT_RECORD) continue;
    char place[64];
    snprintf(place, sizeof place, "facts: %s[0]", t->key);
    json_t *list = json_object_get(root, t->key);
    refused(root, root, place, t->key, json_integer(1));
    if (t->layout != HN_FACT_OBJECT) refused(root, root, place, t->key, json_pack("[i]", 1));
    list = json_object_get(root, t->key);
    spoil_members(root, id, t->layout == HN_FACT_OBJECT ? list : json_array_get(list, 0), place);
  }
  json_decref(root);
  free(text);
  hone_facts_destroy(facts);
  hn_arena_free(&filler.arena);
}

static size_t size_of(const hn_fact_member *m) {
  static const size_t sizes[] = {[HN_STORE_TEXT] = sizeof(char *),
                                 [HN_STORE_DOUBLE] = sizeof(double),
                                 [HN_STORE_BOOL] = sizeof(bool),
                                 [HN_STORE_U8] = 1,
                                 [HN_STORE_I32] = 4,
                                 [HN_STORE_U32] = 4,
                                 [HN_STORE_I64] = 8,
                                 [HN_STORE_U64] = 8,
                                 [HN_STORE_LIST] = sizeof(void *)};
  return sizes[m->store];
}

/* Marks a scalar's bytes with its size. */
static void mark(hn_fact_id id, const char *key, char *bytes, size_t offset, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (bytes[offset + i]) fail_msg("%s.%s is listed twice", hn_fact_tables[id].key, key);
    bytes[offset + i] = (char)size;
  }
}

/* A field of the struct that the list lacks would be lost: between the members is padding alone. */
static void the_list_has_every_field(void **state) {
  (void)state;
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    const size_t size = hn_fact_tables[id].size;
    char bytes[sizeof(hn_fact_row) + 1] = {0};
    for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++) {
      mark(id, m->key, bytes, m->offset, size_of(m));
      if (m->store == HN_STORE_LIST) mark(id, m->key, bytes, m->count_offset, sizeof(size_t));
    }
    bytes[size] = _Alignof(max_align_t) > 8 ? 8 : (char)_Alignof(max_align_t);
    for (size_t i = 0, gap = 0; i <= size; gap = bytes[i] ? 0 : gap + 1, i++)
      if (bytes[i] && gap >= (size_t)bytes[i])
        fail_msg("%s: facts.def lacks what is at byte %d of the struct", hn_fact_tables[id].key,
                 (int)(i - gap));
  }
}

static void keys_are_told_apart(void **state) {
  (void)state;
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    for (hn_fact_id other = HN_FACTS_NONE + 1; other < id; other++)
      assert_string_not_equal(hn_fact_tables[id].key, hn_fact_tables[other].key);
    for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++)
      for (const hn_fact_member *k = hn_fact_tables[id].members(); k < m; k++)
        if (strcmp(m->key, k->key) == 0) fail_msg("%s.%s is listed twice", hn_fact_tables[id].key, m->key);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_member_survives),         cmocka_unit_test(optional_members_are_left_out),
      cmocka_unit_test(every_wrong_member_is_refused), cmocka_unit_test(the_list_has_every_field),
      cmocka_unit_test(keys_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
