#include "api/chain/member.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_status hn_reading_fail(const hn_reading *r, const hn_json_way *way, hone_status status,
                            hone_error *error, const char *what, ...) {
  char text[sizeof error->what];
  va_list args;
  va_start(args, what);
  vsnprintf(text, sizeof text, what, args);
  va_end(args);
  const hn_json_position p = hn_json_where(r->text, r->length, way);
  hn_fail(error, status, "%s", text);
  hn_error_where(error, "%s: line %d, column %d", r->path, p.line, p.column);
  return status;
}

const hn_member *hn_member_find(const hn_member *rows, const char *name) {
  for (; rows && rows->name; rows++)
    if (strcmp(rows->name, name) == 0) return rows;
  return NULL;
}

/* A path as it is opened. NULL: no memory. */
static const char *path_beside(const hn_reading *r, const char *path) {
  if (!r->folder[0] || path[0] == '/' || strncmp(path, "zoo:", 4) == 0) return hn_arena_strdup(r->keep, path);
  return hn_arena_printf(r->keep, "%s/%s", r->folder, path);
}

static hone_status wants(const hn_reading *r, const hn_json_way *way, const char *what, hone_error *error) {
  hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "wrong value for '%s'",
                  way->key ? way->key : "an element");
  hn_error_expected(error, "%s", what);
  return HONE_ERROR_INPUT;
}

hone_status hn_member_text(const hn_reading *r, const hn_json_way *way, json_t *value, const char *what,
                           const char **out, hone_error *error) {
  const char *text = json_string_value(value);
  if (!value && way->key)
    return hn_reading_fail(r, way, HONE_ERROR_INPUT, error, "'%s' is missing", way->key);
  if (!text || !text[0] || json_string_length(value) != strlen(text)) return wants(r, way, what, error);
  *out = hn_arena_strdup(r->keep, text);
  return *out ? HONE_OK : hn_fail_memory(error, strlen(text), "a chain");
}

/* A number, or "1/255". */
static bool number(json_t *value, double *out) {
  const char *text = json_string_value(value);
  *out = json_number_value(value);
  if (json_is_number(value)) return isfinite(*out);
  if (!text) return false;
  char *end;
  *out = strtod(text, &end);
  if (end == text || *end != '/') return false;
  const char *below = end + 1;
  const double by = strtod(below, &end);
  *out /= by;
  return end != below && !*end && isfinite(*out);
}

static hone_status real(const hn_reading *r, const hn_json_way *way, json_t *value, const hn_member *row,
                        double *to, hone_error *error) {
  double v;
  char text[120];
  snprintf(text, sizeof text, "a number from %g to %g", row->least, row->most);
  if (!number(value, &v) || v < row->least || v > row->most) return wants(r, way, text, error);
  *to = v;
  return HONE_OK;
}

static hone_status count(const hn_reading *r, const hn_json_way *way, json_t *value, const hn_member *row,
                         int64_t *to, hone_error *error) {
  char text[120];
  snprintf(text, sizeof text, "a whole number from %.0f to %.0f", row->least, row->most);
  const double v = (double)json_integer_value(value);
  if (!json_is_integer(value) || v < row->least || v > row->most) return wants(r, way, text, error);
  *to = json_integer_value(value);
  return HONE_OK;
}

static hone_status word(const hn_reading *r, const hn_json_way *way, json_t *value, const hn_member *row,
                        int *to, hone_error *error) {
  char text[120] = "";
  for (int i = 0; row->words[i]; i++) {
    if (json_is_string(value) && strcmp(json_string_value(value), row->words[i]) == 0) {
      *to = i;
      return HONE_OK;
    }
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s\"%s\"", i ? " or " : "", row->words[i]);
  }
  return wants(r, way, text, error);
}

static hone_status three(const hn_reading *r, const hn_json_way *way, json_t *value, float *to,
                         hone_error *error) {
  for (size_t i = 0; i < 3; i++) {
    double v;
    if (!number(json_is_array(value) ? json_array_get(value, i) : value, &v) ||
        (json_is_array(value) && json_array_size(value) != 3))
      return wants(r, way, "a number, or a list of three", error);
    to[i] = (float)v;
  }
  return HONE_OK;
}

hone_status hn_member_read(const hn_reading *r, const hn_json_way *way, json_t *value, const hn_member *row,
                           void *settings, hone_error *error) {
  void *to = (char *)settings + row->at;
  hone_status status = HONE_OK;
  switch (row->type) {
  case HN_MEMBER_REAL: return real(r, way, value, row, to, error);
  case HN_MEMBER_COUNT: return count(r, way, value, row, to, error);
  case HN_MEMBER_WORD: return word(r, way, value, row, to, error);
  case HN_MEMBER_THREE: return three(r, way, value, to, error);
  case HN_MEMBER_TEXT: return hn_member_text(r, way, value, "a text", to, error);
  case HN_MEMBER_FLAG:
    if (!json_is_boolean(value)) return wants(r, way, "true or false", error);
    *(bool *)to = json_is_true(value);
    return HONE_OK;
  case HN_MEMBER_FILE: break;
  }
  const char *path;
  status = hn_member_text(r, way, value, "a path", &path, error);
  if (status == HONE_OK && !(*(const char **)to = path_beside(r, path)))
    status = hn_fail_memory(error, strlen(path), "a chain");
  return status;
}
