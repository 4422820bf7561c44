#include "insight/import/read/csv.h"

#include "base/error.h"
#include "insight/import/read/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIELDS_MOST = 4096, ROW_MOST = 16 << 20 };

static void end_field(hn_csv *c, size_t start) {
  hn_str_putc(&c->text, '\0');
  if (!hn_vec_push(&c->fields, start)) c->text.failed = true;
}

/* One row, separated by c->separator; *more is false when there was none before the end. */
static hone_status read_row(hn_csv *c, bool *more, hone_error *error) {
  hn_source *s = c->source;
  hn_str_clear(&c->text);
  c->fields.len = 0;
  c->line = s->line;
  c->line_ended = false;
  size_t start = 0;
  bool quoted = false, any = false;
  uint64_t opened = s->line;
  for (;;) {
    int b = hn_source_peek(s);
    if (s->status) return s->status;
    if (b == HN_SOURCE_EOF) break;
    any = true;
    s->at++;
    if (b == '\n') s->line++;
    if (quoted) {
      if (b == '"' && hn_source_peek(s) == '"')
        s->at++;
      else if (b == '"') {
        quoted = false;
        continue;
      }
      if (b) hn_str_putc(&c->text, (char)b);
    } else if (b == ' ' && c->text.len == start) {
      continue; /* before a field, also before its quotation mark */
    } else if (b == '"' && c->text.len == start) {
      quoted = true;
      opened = s->line;
    } else if (b == c->separator) {
      end_field(c, start);
      start = c->text.len;
    } else if (b == '\n') {
      c->line_ended = true;
      break;
    } else if (b && b != '\r')
      hn_str_putc(&c->text, (char)b);
    if (c->text.len > ROW_MOST || c->fields.len > FIELDS_MOST)
      return hn_source_fail_line(s, error, c->line, "a row of more than %d columns or %d MiB", FIELDS_MOST,
                                 ROW_MOST >> 20);
    if (c->text.failed) break;
  }
  if (quoted) return hn_source_fail_line(s, error, opened, "a quotation mark is not closed");
  if (any) end_field(c, start);
  *more = any;
  return c->text.failed ? hn_fail_memory(error, c->text.len, "a row of a table") : HONE_OK;
}

static bool is_blank_row(const hn_csv *c) {
  return c->fields.len == 1 && !c->text.ptr[strspn(c->text.ptr, " \t")];
}

/* The most frequent of the usual ones in the first line, outside of quotation marks. */
static char find_separator(hn_source *s) {
  static const char known[] = ",;\t";
  size_t counts[3] = {0}, n = hn_source_ahead(s, 65536), best = 0;
  bool quoted = false, text = false;
  for (size_t i = 0; i < n && !(s->at[i] == '\n' && text); i++) {
    if (s->at[i] == '"') quoted = !quoted;
    if (s->at[i] > ' ') text = true;
    for (size_t k = 0; k < 3; k++) counts[k] += !quoted && s->at[i] == known[k];
  }
  for (size_t k = 1; k < 3; k++)
    if (counts[k] > counts[best]) best = k;
  return known[best];
}

static char *trimmed(char *text) {
  static const char around[] = " \t\r\n\"";
  text += strspn(text, around);
  size_t n = strlen(text);
  while (n && strchr(around, text[n - 1])) n--;
  text[n] = 0;
  return text;
}

/* "Task Duration(us)" is a name and a unit; "kernel (all)" keeps its parenthesis only when no unit is in it.
 */
static hn_csv_column column_of(char *text) {
  char *open = strrchr(text, '('), *close = strrchr(text, ')');
  hn_csv_column column = {text, ""};
  if (open && close && close > open && !close[1]) {
    *open = *close = 0;
    column.unit = trimmed(open + 1);
    column.name = trimmed(text);
  }
  return column;
}

hone_status hn_csv_next(hn_csv *c, bool *more, hone_error *error) {
  do {
    hone_status status = read_row(c, more, error);
    if (status) return status;
  } while (*more && is_blank_row(c));
  /* Rows may be shorter than the header; one that is, and without the end of its line, was cut. */
  if (*more && c->fields.len < c->column_count && hn_source_peek(c->source) == HN_SOURCE_EOF &&
      !c->line_ended)
    return hn_csv_fail(c, error,
                       "the last row ends in column %zu of %zu (was the file cut off while it was "
                       "written or copied?)",
                       c->fields.len, c->column_count);
  return HONE_OK;
}

/* ---- the comma that stands for a point ---- */

/* Does a field speak for a decimal comma (1), for a point (-1), or for neither (0)? A group of three digits
 * behind a mark may be thousands. */
static int comma_vote(const uint8_t *at, size_t n) {
  size_t commas = 0, points = 0, last = n, digits = 0;
  char mark = 0;
  for (size_t i = 0; i < n; i++) {
    if (at[i] >= '0' && at[i] <= '9') {
      digits++;
      continue;
    }
    if (at[i] != ',' && at[i] != '.') {
      /* Spaces, also those that do not break, group digits in some countries. */
      if (at[i] == ' ' || at[i] >= 0x80 || (i == 0 && at[i] == '-')) continue;
      return 0;
    }
    commas += at[i] == ',';
    points += at[i] == '.';
    mark = (char)at[i];
    last = i;
  }
  if (!digits || last + 1 >= n) return 0;
  const bool both = commas && points, three = n - last - 1 == 3;
  if (mark == ',') return commas == 1 && (both || !three) ? 1 : 0;
  return points == 1 && (both || !three) ? -1 : 0;
}

/* Columns of lists of numbers, versions and names say nothing. */
static bool counts_for_comma(const char *name) {
  static const char *const other[] = {"shape", "size", "cc", "name", "id", "version", "format", "dim"};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (strcasestr(name, other[i])) return false;
  return true;
}

/* Looks at the rows behind the header that the window holds: by columns, so that one column of long lists
 * does not outvote the others. */
static bool has_decimal_comma(hn_csv *c) {
  const size_t n = hn_source_ahead(c->source, 65536);
  const uint8_t *at = c->source->at, *end = at + (n < 65536 ? n : 65536);
  int8_t *votes = hn_calloc(c->column_count + 1, 1);
  int sum = 0;
  size_t column = 0;
  for (const uint8_t *p = at; votes && p < end; p++) {
    const bool quoted = *p == '"';
    const uint8_t *start = p += quoted;
    while (p < end && (quoted ? *p != '"' : *p != (uint8_t)c->separator && *p != '\n' && *p != '\r')) p++;
    if (p == end) break;
    const int vote = column < c->column_count ? comma_vote(start, (size_t)(p - start)) : 0;
    if (vote) votes[column] = (int8_t)vote;
    while (p < end && *p != (uint8_t)c->separator && *p != '\n') p++;
    column = p < end && *p == '\n' ? 0 : column + 1;
  }
  for (size_t i = 0; votes && i < c->column_count; i++)
    if (counts_for_comma(c->columns[i].name)) sum += votes[i];
  hn_free(votes);
  return sum > 0;
}

hone_status hn_csv_open(hn_csv *c, hn_source *source, hone_error *error) {
  *c = (hn_csv){.source = source};
  c->separator = find_separator(source);
  bool more;
  hone_status status = hn_csv_next(c, &more, error);
  if (status) return status;
  if (!more) return hn_source_fail_line(source, error, source->line, "the table is empty");
  c->columns = HN_NEW_ARRAY(&c->arena, hn_csv_column, c->fields.len);
  if (!c->columns) return hn_fail_memory(error, c->fields.len * sizeof *c->columns, "a table's header");
  for (size_t i = 0; i < c->fields.len; i++) {
    char *copy = hn_arena_strdup(&c->arena, c->text.ptr + c->fields.ptr[i]);
    if (!copy) return hn_fail_memory(error, 0, "a table's header");
    c->columns[i] = column_of(trimmed(copy));
  }
  c->column_count = c->fields.len;
  c->decimal_comma = has_decimal_comma(c);
  return source->status;
}

void hn_csv_close(hn_csv *c) {
  hn_str_free(&c->text);
  hn_vec_free(&c->fields);
  hn_arena_free(&c->arena);
}

int hn_csv_find(const hn_csv *c, const char *name) {
  for (size_t i = 0; i < c->column_count; i++)
    if (hn_text_same(c->columns[i].name, name)) return (int)i;
  return -1;
}

int hn_csv_find_any(const hn_csv *c, const char *const *names) {
  for (; *names; names++) {
    int column = hn_csv_find(c, *names);
    if (column >= 0) return column;
  }
  return -1;
}

double hn_csv_unit_ns(const hn_csv *c, int column, double absent) {
  double ns = column >= 0 ? hn_text_unit_ns(c->columns[column].unit) : 0;
  return ns > 0 ? ns : absent;
}

const char *hn_csv_text(const hn_csv *c, int column) {
  if (column < 0 || (size_t)column >= c->fields.len) return NULL;
  char *text = trimmed(c->text.ptr + c->fields.ptr[column]);
  return !*text || strcasecmp(text, "N/A") == 0 || strcasecmp(text, "NA") == 0 ? NULL : text;
}

const char *hn_csv_digits(const hn_csv *c, int column, char buffer[64]) {
  const char *text = hn_csv_text(c, column);
  size_t n = 0;
  if (!text || !c->decimal_comma || strlen(text) > 63) return text;
  for (; *text; text++)
    if (*text == ',')
      buffer[n++] = '.';
    else if (*text != '.' && (signed char)*text > 0 && !(*text == ' ' && n && strchr("0123456789", text[1])))
      buffer[n++] = *text;
  buffer[n] = 0;
  return buffer;
}

double hn_csv_number(const hn_csv *c, int column, double absent) {
  char buffer[64];
  const char *text = hn_csv_digits(c, column, buffer);
  double value;
  return text && hn_text_count(text, &value) ? value : absent;
}

hone_status hn_csv_fail(const hn_csv *c, hone_error *error, const char *format, ...) {
  char what[256];
  va_list ap;
  va_start(ap, format);
  vsnprintf(what, sizeof what, format, ap);
  va_end(ap);
  return hn_source_fail_line(c->source, error, c->line, "%s", what);
}
