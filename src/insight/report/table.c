#include "insight/report/table.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const escapes[] = {"",         "\033[1m",  "\033[2m", "\033[31m",
                                      "\033[33m", "\033[32m", "\033[36m"};

/* A character of Chinese, Japanese or Korean, two columns wide; text may break before and after it. */
static bool is_wide(const char *p) {
  unsigned char c = (unsigned char)*p;
  return (c >= 0xE3 && c <= 0xED) || (c == 0xEF && (unsigned char)p[1] >= 0xBC);
}

static int columns_of(const char *text) {
  int n = 0;
  for (; *text; text++)
    if ((*text & 0xc0) != 0x80) n += is_wide(text) ? 2 : 1;
  return n;
}

static void spaces(hn_str *o, int n) {
  while (n-- > 0) hn_str_putc(o, ' ');
}

static void colored(hn_str *o, const hn_look *look, hn_color color, const char *text, size_t length) {
  bool on = look->colors && color != HN_PLAIN && length;
  if (on) hn_str_puts(o, escapes[color]);
  hn_str_append(o, text, length);
  if (on) hn_str_puts(o, "\033[0m");
}

void hn_show(hn_str *o, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  hn_text_vformat(o, format, ap);
  va_end(ap);
}

void hn_paint(hn_str *o, const hn_look *look, hn_color color, const char *format, ...) {
  hn_str text = {0};
  va_list ap;
  va_start(ap, format);
  hn_text_vformat(&text, format, ap);
  va_end(ap);
  /* Colours end before the line does. */
  const bool line = text.len && text.ptr[text.len - 1] == '\n';
  if (text.len) colored(o, look, color, text.ptr, text.len - line);
  if (line) hn_str_putc(o, '\n');
  if (text.failed) o->failed = true;
  hn_str_free(&text);
}

void hn_heading(hn_str *o, const hn_look *look, const char *format, ...) {
  hn_str text = {0}, rule = {0};
  va_list ap;
  va_start(ap, format);
  hn_text_vformat(&text, format, ap);
  va_end(ap);
  const char *words = text.ptr ? text.ptr : "";
  hn_str_putc(o, '\n');
  colored(o, look, HN_BOLD, words, text.len);
  for (int i = columns_of(words) + 1; i < look->width; i++) hn_str_puts(&rule, look->unicode ? "─" : "-");
  if (rule.len) hn_str_putc(o, ' ');
  if (rule.len) colored(o, look, HN_DIM, rule.ptr, rule.len);
  hn_str_putc(o, '\n');
  if (text.failed || rule.failed) o->failed = true;
  hn_str_free(&text);
  hn_str_free(&rule);
}

/* Full-width punctuation, which does not begin a line. */
static bool closes(const char *p) {
  return (unsigned char)*p == 0xEF || ((unsigned char)*p == 0xE3 && (unsigned char)p[1] == 0x80);
}

/* Bytes and columns of what must stay together from p on. */
static size_t unbroken(const char *p, int *columns) {
  size_t n = 0;
  *columns = 0;
  if (is_wide(p)) {
    do {
      for (int k = 0; k < 3 && p[n]; k++) n++;
      *columns += 2;
    } while (is_wide(p + n) && closes(p + n));
    return n;
  }
  for (; p[n] && p[n] != ' ' && !is_wide(p + n); n++) *columns += ((unsigned char)p[n] & 0xC0) != 0x80;
  return n;
}

void hn_paragraph(hn_str *o, const hn_look *look, int indent, hn_color color, const char *text) {
  hn_str clean = {0}, line = {0};
  int at = indent;
  if (text) hn_text_escape(&clean, text, strlen(text));
  for (const char *p = clean.ptr ? clean.ptr : "";;) {
    bool space = *p == ' ';
    while (*p == ' ') p++;
    if (!*p) break;
    int columns;
    size_t n = unbroken(p, &columns);
    if (line.len && at + space + columns > look->width) {
      spaces(o, indent);
      colored(o, look, color, line.ptr, line.len);
      hn_str_putc(o, '\n');
      hn_str_clear(&line);
      at = indent;
    } else if (line.len && space) {
      hn_str_putc(&line, ' ');
      at++;
    }
    hn_str_printf(&line, "%.*s", (int)n, p);
    at += columns;
    p += n;
  }
  spaces(o, indent);
  if (line.len) colored(o, look, color, line.ptr, line.len);
  hn_str_putc(o, '\n');
  if (line.failed || clean.failed) o->failed = true;
  hn_str_free(&line);
  hn_str_free(&clean);
}

void hn_bar(hn_str *o, const hn_look *look, double share, int cells) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  share = !(share > 0) ? 0 : share > 1 ? 1 : share; /* no number: no bar */
  int parts = (int)(share * cells * 8 + 0.5);
  if (share > 0 && parts == 0) parts = 1;
  if (!look->unicode) {
    for (int i = 0; i < (parts + 4) / 8; i++) hn_str_putc(o, '#');
    return;
  }
  for (int i = 0; i < parts / 8; i++) hn_str_puts(o, "█");
  hn_str_puts(o, eighths[parts % 8]);
}

/* ---- tables ---- */

void hn_table_column(hn_table *t, const char *title, bool is_text, int least, int priority) {
  if (t->column_count < HN_TABLE_COLUMNS)
    t->columns[t->column_count++] = (hn_column){title, is_text, least, priority};
}

void hn_table_row(hn_table *t) {
  if (t->failed) return;
  if (t->rows == t->capacity) {
    size_t capacity = t->capacity ? t->capacity * 2 : 64, n = capacity * t->column_count;
    char **cells = hn_realloc(t->cells, n * sizeof *cells);
    if (cells) t->cells = cells;
    hn_color *colors = cells ? hn_realloc(t->colors, n * sizeof *colors) : NULL;
    if (!colors) {
      t->failed = true;
      return;
    }
    t->colors = colors;
    t->capacity = capacity;
  }
  size_t first = t->rows++ * t->column_count;
  for (size_t i = 0; i < t->column_count; i++) {
    t->cells[first + i] = NULL;
    t->colors[first + i] = HN_PLAIN;
  }
}

void hn_table_cell(hn_table *t, size_t column, hn_color color, const char *format, ...) {
  if (t->failed || column >= t->column_count) return;
  hn_str text = {0};
  va_list ap;
  va_start(ap, format);
  hn_text_vformat(&text, format, ap);
  va_end(ap);
  size_t i = (t->rows - 1) * t->column_count + column;
  hn_free(t->cells[i]);
  t->cells[i] = text.ptr; /* the cell's now; NULL is empty */
  t->colors[i] = color;
  if (text.failed) t->failed = true;
}

void hn_table_free(hn_table *t) {
  for (size_t i = 0; i < t->rows * t->column_count; i++) hn_free(t->cells[i]);
  hn_free(t->cells);
  hn_free(t->colors);
  *t = (hn_table){0};
}

static const char *cell_text(const hn_table *t, size_t row, size_t column) {
  const char *s = t->cells[row * t->column_count + column];
  return s ? s : "";
}

/* Columns of the longest word of a title. */
static int longest_word(const char *title) {
  int most = 0;
  for (const char *p = title; *p; p += *p == ' ') {
    int columns;
    p += unbroken(p, &columns);
    if (columns > most) most = columns;
  }
  return most;
}

/* Columns of numbers become as narrow as their numbers and the words of their titles are; false: none does.
 */
static bool break_titles(const hn_table *t, int *width) {
  bool narrower = false;
  for (size_t c = 0; c < t->column_count; c++) {
    if (!width[c] || t->columns[c].is_text) continue;
    int least = longest_word(t->columns[c].title);
    for (size_t r = 0; r < t->rows; r++) {
      const int n = columns_of(cell_text(t, r, c));
      if (n > least) least = n;
    }
    narrower = narrower || least < width[c];
    width[c] = least;
  }
  return narrower;
}

/* Widths that fit: natural ones, then text columns shrink, then whole columns go (width 0), then titles
 * break. */
static void fit(const hn_table *t, int available, int *width) {
  for (size_t c = 0; c < t->column_count; c++) {
    width[c] = columns_of(t->columns[c].title);
    for (size_t r = 0; r < t->rows; r++) {
      int n = columns_of(cell_text(t, r, c));
      if (n > width[c]) width[c] = n;
    }
  }
  for (;;) {
    int total = -2, spare = 0;
    size_t drop = t->column_count;
    for (size_t c = 0; c < t->column_count; c++) {
      if (!width[c]) continue;
      const hn_column *column = &t->columns[c];
      total += width[c] + 2;
      if (column->is_text && width[c] > column->least) spare += width[c] - column->least;
      if (column->priority && (drop == t->column_count || column->priority > t->columns[drop].priority))
        drop = c;
    }
    int over = total - available;
    if (over <= 0) return;
    if (spare < over && drop == t->column_count && break_titles(t, width)) continue;
    if (spare >= over || drop == t->column_count) {
      /* Take from the widest text column, one character at a time, so that long names give first. */
      while (over > 0 && spare > 0) {
        size_t widest = t->column_count;
        for (size_t c = 0; c < t->column_count; c++)
          if (t->columns[c].is_text && width[c] > t->columns[c].least &&
              (widest == t->column_count || width[c] > width[widest]))
            widest = c;
        width[widest]--;
        over--;
        spare--;
      }
      return;
    }
    width[drop] = 0;
  }
}

/* Cuts in the middle: of "/backbone/layer3/conv1/Conv" both ends tell something. */
static void write_cut(hn_str *o, const hn_look *look, hn_color color, const char *text, int width) {
  int n = columns_of(text);
  if (n <= width) {
    colored(o, look, color, text, strlen(text));
    return;
  }
  const char *mark = look->unicode ? "…" : "~";
  int head = (width - 1) / 3, tail = width - 1 - head, skip = n - tail, at = 0;
  bool marked = false;
  hn_str cut = {0};
  for (const char *p = text; *p;) {
    const int columns = is_wide(p) ? 2 : 1;
    const size_t n_bytes = hn_text_character(p), bytes = n_bytes ? n_bytes : 1;
    const bool begins = at + columns <= head;
    if (!begins && !marked) hn_str_puts(&cut, mark);
    marked = marked || !begins;
    if (begins || at >= skip) hn_str_append(&cut, p, bytes);
    at += columns;
    p += bytes;
  }
  if (cut.ptr) colored(o, look, color, cut.ptr, cut.len);
  if (cut.failed) o->failed = true;
  hn_str_free(&cut);
}

void hn_cut(hn_str *o, const hn_look *look, hn_color color, const char *text, int width) {
  hn_str clean = {0};
  if (text) hn_text_escape(&clean, text, strlen(text));
  write_cut(o, look, color, clean.ptr ? clean.ptr : "", width);
  if (clean.failed) o->failed = true;
  hn_str_free(&clean);
}

static void write_cell(hn_str *o, const hn_look *look, hn_color color, const hn_column *column,
                       const char *text, int width) {
  if (column->is_text)
    write_cut(o, look, color, text, width);
  else
    spaces(o, width - columns_of(text));
  if (column->is_text)
    spaces(o, width - columns_of(text));
  else
    colored(o, look, color, text, strlen(text));
}

static void end_line(hn_str *o, size_t start) {
  while (o->len > start && o->ptr[o->len - 1] == ' ') o->ptr[--o->len] = 0;
  hn_str_putc(o, '\n');
}

/* One line of titles; what does not fit into its column is left for the next one. False: that was the last.
 */
static bool write_titles(hn_str *o, const hn_look *look, const hn_table *t, const int *width,
                         const char **title) {
  const size_t line_start = o->len;
  bool first = true, more = false;
  for (size_t c = 0; c < t->column_count; c++) {
    if (!width[c]) continue;
    if (!first) hn_str_puts(o, "  ");
    first = false;
    hn_str line = {0};
    const char *p = title[c];
    if (t->columns[c].is_text) {
      hn_str_puts(&line, p);
      p += strlen(p);
    }
    for (int at = 0, columns; *p; at += columns) {
      const size_t space = strspn(p, " "), n = unbroken(p + space, &columns);
      if (at && at + (int)space + columns > width[c]) break;
      if (at) hn_str_append(&line, p, space), at += (int)space;
      hn_str_append(&line, p + space, n);
      p += space + n;
    }
    title[c] = p + strspn(p, " ");
    more = more || *title[c];
    write_cell(o, look, HN_DIM, &t->columns[c], line.ptr ? line.ptr : "", width[c]);
    if (line.failed) o->failed = true;
    hn_str_free(&line);
  }
  end_line(o, line_start);
  return more;
}

void hn_table_write(hn_str *o, const hn_look *look, hn_table *t) {
  int width[HN_TABLE_COLUMNS];
  if (t->failed) {
    o->failed = true;
    return;
  }
  fit(t, look->width, width);
  const char *title[HN_TABLE_COLUMNS]; /* what is left of each */
  for (size_t c = 0; c < t->column_count; c++) title[c] = t->columns[c].title;
  while (write_titles(o, look, t, width, title)) {
  }
  for (size_t r = 0; r < t->rows; r++) {
    bool first = true;
    const size_t line_start = o->len;
    for (size_t c = 0; c < t->column_count; c++) {
      if (!width[c]) continue;
      if (!first) hn_str_puts(o, "  ");
      first = false;
      write_cell(o, look, t->colors[r * t->column_count + c], &t->columns[c], cell_text(t, r, c), width[c]);
    }
    end_line(o, line_start);
  }
}
