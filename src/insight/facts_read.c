/* JSON -> facts v1. The text is hostile until proven otherwise: every member is optional, every type is
 * checked, every number is bounded, and the first fault is reported with its place. */
#include <hone/facts.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "insight/facts_table.h"
#include "base/json_read.h"

#include <jansson.h>
#include <string.h>

/* Where the reader is, and the first thing that was wrong. */
typedef struct reader {
  hone_facts *facts;
  hone_error *error;
  hone_status status;
  const char *table;
  size_t row;
  hn_arena lists; /* of the current row; the facts make their own copy */
} reader;

static void fault(reader *r, const char *key, const char *expected) {
  if (r->status) return;
  r->status = hn_fail(r->error, HONE_ERROR_INPUT, "member \"%s\" has the wrong type or range", key);
  hn_error_where(r->error, "facts: %s[%zu]", r->table, r->row);
  hn_error_expected(r->error, "%s", expected);
}

static void out_of_memory(reader *r) {
  if (!r->status) r->status = hn_fail_memory(r->error, 0, "reading facts");
}

static void read_row(reader *r, hn_fact_id id, const json_t *from, void *row);

static bool is_integer(const json_t *v, int64_t low, int64_t high) {
  return json_is_integer(v) && json_integer_value(v) >= low && json_integer_value(v) <= high;
}

static void read_integer(reader *r, const hn_fact_member *m, const json_t *v, void *row) {
  if (is_integer(v, hn_fact_low(m), m->high))
    hn_fact_set_integer(m, row, json_integer_value(v));
  else
    fault(r, m->key, "an integer in range");
}

static void read_number(reader *r, const hn_fact_member *m, const json_t *v, void *row) {
  const double value = json_number_value(v);
  if (!json_is_number(v))
    fault(r, m->key, "a number");
  else if (m->low == 0 && value < 0)
    fault(r, m->key, "a number of 0 or more");
  else
    hn_fact_set_number(m, row, value);
}

static void read_word(reader *r, const hn_fact_member *m, const json_t *v, void *row) {
  const char *word = json_string_value(v);
  for (int64_t i = 0; word && i <= m->high; i++)
    if (strcmp(word, m->name((int)i)) == 0) {
      hn_fact_set_integer(m, row, i);
      return;
    }
  fault(r, m->key, "one of the words in docs/reference/facts-members.md");
}

/* Ids are positions; a file that numbers them otherwise would have its parents point at strangers. */
static void read_own_id(reader *r, const hn_fact_member *m, const json_t *v, void *row) {
  const int64_t position = (int64_t)r->row + 1;
  if (is_integer(v, position, position))
    hn_fact_set_integer(m, row, position);
  else
    fault(r, m->key, "the row's position, from 1");
}

static void read_indices(reader *r, const hn_fact_member *m, const json_t *list, void *row) {
  const size_t count = json_array_size(list);
  int32_t *indices = HN_NEW_ARRAY(&r->lists, int32_t, count);
  if (!indices) out_of_memory(r);
  for (size_t i = 0; i < count && !r->status; i++) {
    const json_t *v = json_array_get(list, i);
    if (is_integer(v, 0, INT32_MAX))
      indices[i] = (int32_t)json_integer_value(v);
    else
      fault(r, m->key, "an array of indices");
  }
  if (!r->status) hn_fact_set_list(m, row, indices, count);
}

static void read_records(reader *r, const hn_fact_member *m, const json_t *list, void *row) {
  const size_t count = json_array_size(list), size = hn_fact_tables[m->of].size;
  char *records = hn_arena_array(&r->lists, count, size);
  if (!records) out_of_memory(r);
  for (size_t i = 0; i < count && !r->status; i++) {
    const json_t *v = json_array_get(list, i);
    if (json_is_object(v))
      read_row(r, m->of, v, records + i * size);
    else
      fault(r, m->key, "an array of objects");
  }
  if (!r->status) hn_fact_set_list(m, row, records, count);
}

static void read_list(reader *r, const hn_fact_member *m, const json_t *list, void *row) {
  if (!json_is_array(list))
    fault(r, m->key, m->word == HN_FACT_INDICES ? "an array of indices" : "an array of objects");
  else if (json_array_size(list) && m->word == HN_FACT_INDICES)
    read_indices(r, m, list, row);
  else if (json_array_size(list))
    read_records(r, m, list, row);
}

static void read_member(reader *r, const hn_fact_member *m, const json_t *v, void *row) {
  switch (m->word) {
  case HN_FACT_TEXT:
    hn_fact_set_text(m, row, json_string_value(v));
    if (!json_is_string(v)) fault(r, m->key, "a string");
    break;
  case HN_FACT_NUMBER: read_number(r, m, v, row); break;
  case HN_FACT_FLAG:
    hn_fact_set_integer(m, row, json_is_true(v));
    if (!json_is_boolean(v)) fault(r, m->key, "true or false");
    break;
  case HN_FACT_INTEGER: read_integer(r, m, v, row); break;
  case HN_FACT_OWN_ID: read_own_id(r, m, v, row); break;
  case HN_FACT_ENUM: read_word(r, m, v, row); break;
  case HN_FACT_INDICES:
  case HN_FACT_RECORDS: read_list(r, m, v, row); break;
  }
}

/* Texts stay the JSON's. */
static void read_row(reader *r, hn_fact_id id, const json_t *from, void *row) {
  memset(row, 0, hn_fact_tables[id].size);
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key && !r->status; m++) {
    const json_t *v = json_object_get(from, m->key);
    if (json_is_null(v)) v = NULL;
    if (v || m->when == HN_FACT_REQUIRED)
      read_member(r, m, v, row);
    else if (m->word == HN_FACT_NUMBER)
      hn_fact_set_number(m, row, m->absent);
    else if (m->word == HN_FACT_INTEGER)
      hn_fact_set_integer(m, row, (int64_t)m->absent);
  }
}

/* ---- the document ---- */

static void take_row(reader *r, hn_fact_id id, const json_t *from) {
  enum { KEPT = 1 << 20 };
  hn_fact_row row;
  read_row(r, id, from, &row);
  if (!r->status) hn_facts_put(r->facts, id, &row);
  if (r->lists.used > KEPT) hn_arena_free(&r->lists);
}

static void read_table(reader *r, const json_t *root, hn_fact_id id) {
  const char *key = hn_fact_tables[id].key;
  const bool object = hn_fact_tables[id].layout == HN_FACT_OBJECT;
  const json_t *list = json_object_get(root, key), *row;
  r->table = key;
  r->row = 0;
  if (!list || r->status) return;
  if (object && json_is_object(list))
    take_row(r, id, list);
  else if (object || !json_is_array(list))
    fault(r, key, object ? "an object" : "an array");
  json_array_foreach(list, r->row, row) {
    if (r->status) return;
    if (json_is_object(row))
      take_row(r, id, row);
    else
      fault(r, key, "an array of objects");
  }
}

static hone_status check_document(const json_t *root, hone_error *error) {
  const json_t *schema = json_object_get(root, "schema");
  if (!json_is_object(root) || !json_is_string(schema) ||
      strcmp(json_string_value(schema), "hone facts") != 0)
    return hn_fail(error, HONE_ERROR_INPUT,
                   "this JSON is no record of facts: \"schema\" is not \"hone facts\"");
  const json_t *version = json_object_get(root, "version");
  if (!json_is_integer(version) || json_integer_value(version) < 1)
    return hn_fail(error, HONE_ERROR_INPUT, "facts without a version");
  if (json_integer_value(version) > HONE_FACTS_VERSION) {
    hone_status status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "facts version %lld is newer than this hone",
                                 (long long)json_integer_value(version));
    hn_error_expected(error, "version %d or older", HONE_FACTS_VERSION);
    return status;
  }
  return HONE_OK;
}

hone_status hone_facts_from_json(const char *json, size_t length, hone_facts **facts, hone_error *error) {
  if (!facts) return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_from_json: facts may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *facts = NULL;
  json_error_t where;
  reader r = {.error = error};
  json_t *root = hn_json_load(json, length, 0, &where);
  if (!root) {
    r.status = hn_fail(error, HONE_ERROR_INPUT, "no JSON: %s", where.text);
    hn_error_where(error, "facts: line %d, offset %d", where.line, where.position);
    return hn_settle(r.status, lost, error);
  }
  r.status = check_document(root, error);
  if (r.status) goto done;
  r.facts = hone_facts_create();
  if (!r.facts) {
    out_of_memory(&r);
    goto done;
  }
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++)
    if (hn_fact_tables[id].layout != HN_FACT_RECORD) read_table(&r, root, id);
  if (!r.status) r.status = hone_facts_check(r.facts, error);
done:
  r.status = hn_settle(r.status, lost, error);
  if (r.status)
    hone_facts_destroy(r.facts);
  else
    *facts = r.facts;
  hn_arena_free(&r.lists);
  json_decref(root);
  return r.status;
}
