/* A report's JSON -> the figures by which runs are listed. */
#include "insight/history/record.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/json_read.h"
#include "base/vec.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct owner {
  hn_arena arena;
  HN_VEC(hone_record) records;
} owner;

static owner *owner_of(hone_records *out) {
  if (!out->impl) out->impl = hn_calloc(1, sizeof(owner));
  return out->impl;
}

hone_record *hn_records_add(hone_records *out) {
  owner *o = owner_of(out);
  hone_record empty = {0};
#define X(field) empty.field = NAN;
  HONE_RECORD_NUMBERS(X)
#undef X
  if (!o || !hn_vec_push(&o->records, empty)) return NULL;
  out->items = o->records.ptr;
  out->count = o->records.len;
  return &o->records.ptr[o->records.len - 1];
}

const char *hn_records_text(hone_records *out, const char *text, size_t length) {
  owner *o = owner_of(out);
  char *copy = o ? hn_arena_alloc(&o->arena, length + 1) : NULL;
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

void hone_records_free(hone_records *records) {
  owner *o = records ? records->impl : NULL;
  if (o) {
    hn_vec_free(&o->records);
    hn_arena_free(&o->arena);
    hn_free(o);
  }
  if (records) *records = (hone_records){0};
}

static hone_status wrong(hone_error *error, const char *field, const char *wanted) {
  hone_status status = hn_fail(error, HONE_ERROR_INPUT, "field '%s' of the report is no %s", field, wanted);
  hn_error_expected(error, "%s", wanted);
  hn_error_hint(error, "a report is what hone bench --json writes");
  return status;
}

static hone_status read_text(json_t *root, const char *field, hone_records *out, const char **value,
                             hone_error *error) {
  json_t *v = json_object_get(root, field);
  if (!v || json_is_null(v)) return HONE_OK;
  if (!json_is_string(v)) return wrong(error, field, "text");
  *value = hn_records_text(out, json_string_value(v), json_string_length(v));
  return *value ? HONE_OK : hn_fail_memory(error, json_string_length(v), "a report");
}

/* A field, or the one inside of an object that bench has written from the first day. */
static hone_status read_number(json_t *root, const char *object, const char *field, double *value,
                               hone_error *error) {
  json_t *v = json_object_get(object ? json_object_get(root, object) : root, field);
  if (!v || json_is_null(v) || !isnan(*value)) return HONE_OK;
  if (!json_is_number(v)) return wrong(error, field, "number");
  *value = json_number_value(v);
  return *value >= 0 ? HONE_OK : wrong(error, field, "number of 0 or more");
}

/* The range of temperatures, [41, 55], is kept as the text "41-55", as reports before version 1 wrote it. */
static hone_status read_range(json_t *root, const char *field, hone_records *out, const char **value,
                              hone_error *error) {
  json_t *v = json_object_get(root, field);
  const json_t *low = json_array_get(v, 0), *high = json_array_get(v, 1);
  char text[64];
  if (!json_is_array(v)) return read_text(root, field, out, value, error);
  if (json_array_size(v) != 2 || !json_is_number(low) || !json_is_number(high))
    return wrong(error, field, "array of two numbers");
  snprintf(text, sizeof text, "%g-%g", json_number_value(low), json_number_value(high));
  *value = hn_records_text(out, text, strlen(text));
  return *value ? HONE_OK : hn_fail_memory(error, sizeof text, "a report");
}

static hone_status read_fields(json_t *root, hone_records *out, hone_record *r, hone_error *error) {
  hone_status status = HONE_OK;
#define X(field)                                                                                             \
  if (status == HONE_OK)                                                                                     \
    status = (strcmp(#field, "temperature_c_range") == 0 ? read_range : read_text)(root, #field, out,        \
                                                                                   &r->field, error);
  HONE_RECORD_TEXTS(X)
#undef X
#define X(field)                                                                                             \
  if (status == HONE_OK) status = read_number(root, NULL, #field, &r->field, error);
  HONE_RECORD_NUMBERS(X)
#undef X
  const struct {
    const char *field;
    double *value;
  } nested[] = {{"mean", &r->avg_latency_ms},
                {"median", &r->median_latency_ms},
                {"p95", &r->p95_latency_ms},
                {"cv", &r->cv}};
  for (size_t i = 0; i < sizeof nested / sizeof *nested && status == HONE_OK; i++)
    status = read_number(root, "latency_ms", nested[i].field, nested[i].value, error);
  if (status != HONE_OK) return status;
  if (isnan(r->median_latency_ms)) r->median_latency_ms = r->avg_latency_ms;
  if (isnan(r->avg_latency_ms)) r->avg_latency_ms = r->median_latency_ms;
  if (r->avg_latency_ms > 0 && r->median_latency_ms > 0) return HONE_OK;
  status = hn_fail(error, HONE_ERROR_INPUT, "the report has no latency");
  hn_error_expected(error, "avg_latency_ms or latency_ms.median above 0");
  hn_error_hint(error, "hone bench MODEL --json > FILE writes one");
  return status;
}

hone_status hone_record_parse(const char *json, size_t length, hone_records *out, hone_error *error) {
  if (!json || !out) return hn_fail(error, HONE_ERROR_USAGE, "hone_record_parse needs a text and a result");
  *out = (hone_records){0};
  const uint64_t lost = hn_mem_lost();
  json_error_t where;
  json_t *root = hn_json_load(json, length, JSON_REJECT_DUPLICATES, &where);
  hone_status status = HONE_OK;
  if (!root || !json_is_object(root)) {
    status = hn_fail(error, HONE_ERROR_INPUT, "no report: %s", root ? "not a JSON object" : where.text);
    if (!root) hn_error_where(error, "line %d, column %d", where.line, where.column);
    hn_error_hint(error, "hone bench MODEL --json > FILE writes one");
    json_decref(root);
    return hn_settle(status, lost, error);
  }
  hone_record *r = hn_records_add(out);
  status = r ? read_fields(root, out, r, error) : hn_fail_memory(error, sizeof *r, "a report");
  if (status == HONE_OK && !(r->report = hn_records_text(out, json, length)))
    status = hn_fail_memory(error, length, "a report");
  json_decref(root);
  status = hn_settle(status, lost, error);
  if (status != HONE_OK) hone_records_free(out);
  return status;
}
