#include "insight/import/csv.h"

#include "base/error.h"
#include "insight/import/text.h"

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
    } else if (b == '\n')
      break;
    else if (b && b != '\r')
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
  return HONE_OK;
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
  return HONE_OK;
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

double hn_csv_number(const hn_csv *c, int column, double absent) {
  const char *text = hn_csv_text(c, column);
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
