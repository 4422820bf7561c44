/* facts v1 -> JSON, by the list of tables. Members that say nothing (NULL, 0, -1) are left out where the list
 * allows it; the reader puts the same values back. */
#include "insight/facts_write.h"

#include "base/error.h"
#include "insight/json.h"

static void write_row(hn_str *o, hn_fact_id id, const void *row);

static void write_list(hn_str *o, const hn_fact_member *m, const void *row) {
  size_t n;
  const void *list = hn_fact_list(m, row, &n);
  hn_json_open(o, m->key, '[');
  for (size_t i = 0; i < n; i++)
    if (m->word == HN_FACT_INDICES)
      hn_json_int(o, NULL, ((const int32_t *)list)[i]);
    else
      write_row(o, m->of, (const char *)list + i * hn_fact_tables[m->of].size);
  hn_json_close(o, ']');
}

static void write_member(hn_str *o, const hn_fact_member *m, const void *row) {
  switch (m->word) {
  case HN_FACT_TEXT: hn_json_text(o, m->key, hn_fact_text(m, row)); break;
  case HN_FACT_NUMBER: hn_json_num(o, m->key, hn_fact_number(m, row)); break;
  case HN_FACT_FLAG: hn_json_bool(o, m->key, hn_fact_integer(m, row) != 0); break;
  case HN_FACT_ENUM: hn_json_text(o, m->key, m->name((int)hn_fact_integer(m, row))); break;
  case HN_FACT_INTEGER:
  case HN_FACT_OWN_ID:
    if (m->store == HN_STORE_U64)
      hn_json_uint(o, m->key, (uint64_t)hn_fact_integer(m, row));
    else
      hn_json_int(o, m->key, hn_fact_integer(m, row));
    break;
  case HN_FACT_INDICES:
  case HN_FACT_RECORDS: write_list(o, m, row); break;
  }
}

static void write_members(hn_str *o, hn_fact_id id, const void *row) {
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++)
    if (m->when != HN_FACT_OPTIONAL || !hn_fact_is_absent(m, row)) write_member(o, m, row);
}

static void write_row(hn_str *o, hn_fact_id id, const void *row) {
  hn_json_open(o, NULL, '{');
  write_members(o, id, row);
  hn_json_close(o, '}');
}

static void write_rows(hn_str *o, const hone_facts *f, hn_fact_id id) {
  const hn_fact_table *t = &hn_fact_tables[id];
  size_t n;
  const char *rows = hn_facts_rows(f, id, &n);
  if (!n && (t->layout == HN_FACT_ROWS_IF_ANY || t->layout == HN_FACT_LINES_IF_ANY)) return;
  hn_json_open(o, t->key, '[');
  for (size_t i = 0; i < n; i++) {
    if (t->layout == HN_FACT_LINES || t->layout == HN_FACT_LINES_IF_ANY) hn_json_line(o);
    write_row(o, id, rows + i * t->size);
  }
  hn_json_close(o, ']');
  hn_json_line(o);
}

void hn_facts_write_table(hn_str *o, const hone_facts *f, hn_fact_id id) {
  if (hn_fact_tables[id].layout != HN_FACT_OBJECT) {
    write_rows(o, f, id);
    return;
  }
  hn_json_open(o, hn_fact_tables[id].key, '{');
  write_members(o, id, hn_facts_rows(f, id, NULL));
  hn_json_close(o, '}');
  hn_json_line(o);
}

void hn_facts_write_members(hn_str *o, const hone_facts *f) {
  hn_json_text(o, "schema", "hone facts");
  hn_json_int(o, "version", HONE_FACTS_VERSION);
  hn_json_line(o);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++)
    if (hn_fact_tables[id].layout != HN_FACT_RECORD) hn_facts_write_table(o, f, id);
}

hone_status hone_facts_to_json(const hone_facts *f, char **out, size_t *length, hone_error *error) {
  if (!f || !out || !length)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_facts_to_json: f, out and length may not be NULL");
  *out = NULL;
  *length = 0;
  hone_status status = hone_facts_check(f, error);
  if (status) return status;
  hn_str text_out = {0};
  hn_json_open(&text_out, NULL, '{');
  hn_json_line(&text_out);
  hn_facts_write_members(&text_out, f);
  hn_json_close(&text_out, '}');
  hn_json_line(&text_out);
  if (text_out.failed) {
    size_t wanted = text_out.len;
    hn_str_free(&text_out);
    return hn_fail_memory(error, wanted, "the JSON text of the facts");
  }
  *out = text_out.ptr;
  *length = text_out.len;
  return HONE_OK;
}
