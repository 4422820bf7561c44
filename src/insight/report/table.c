#include "insight/report/table.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const escapes[] = {"",         "\033[1m",  "\033[2m", "\033[31m",
                                      "\033[33m", "\033[32m", "\033[36m"};

/* Length of the UTF-8 sequence that starts here; 0 for a stray byte or a cut sequence. */
static int sequence(const unsigned char *p) {
  int n = *p < 0x80                 ? 1
          : *p >= 0xc2 && *p < 0xe0 ? 2
          : *p >= 0xe0 && *p < 0xf0 ? 3
          : *p >= 0xf0 && *p < 0xf5 ? 4
                                    : 0;
  for (int i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  return n;
}

/* C0, DEL and C1 (U+0080..U+009F): a terminal may obey them. */
static bool is_control(const unsigned char *p) {
  return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
}

/* Makes text harmless in place; it never grows. */
static void tame(char *text) {
  unsigned char *in = (unsigned char *)text, *out = in;
  while (*in) {
    int n = sequence(in);
    if (!n || is_control(in)) {
      *out++ = '?';
      in += n ? n : 1;
      continue;
    }
    while (n--) *out++ = *in++;
  }
  *out = 0;
}

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

void hn_paint(hn_str *o, const hn_look *look, hn_color color, const char *format, ...) {
  char small[1024], *text = small;
  va_list ap;
  va_start(ap, format);
  const int length = vsnprintf(small, sizeof small, format, ap);
  va_end(ap);
  if (length < 0) return;
  if ((size_t)length >= sizeof small) { /* half a command would be another one */
    text = hn_malloc((size_t)length + 1);
    if (!text) {
      o->failed = true;
      return;
    }
    va_start(ap, format);
    vsnprintf(text, (size_t)length + 1, format, ap);
    va_end(ap);
  }
  /* A line break is the caller's when the format ends with it; any other came with a name and is harmful. */
  const size_t end = strlen(format);
  const bool line = end && format[end - 1] == '\n' && length;
  if (line) text[length - 1] = 0;
  tame(text);
  colored(o, look, color, text, strlen(text));
  if (line) hn_str_putc(o, '\n');
  if (text != small) hn_free(text);
}

void hn_heading(hn_str *o, const hn_look *look, const char *format, ...) {
  char text[256];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  tame(text);
  hn_str_putc(o, '\n');
  colored(o, look, HN_BOLD, text, strlen(text));
  hn_str_putc(o, ' ');
  hn_str rule = {0};
  for (int i = columns_of(text) + 1; i < look->width; i++) hn_str_puts(&rule, look->unicode ? "─" : "-");
  if (rule.len) colored(o, look, HN_DIM, rule.ptr, rule.len);
  hn_str_free(&rule);
  hn_str_putc(o, '\n');
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
  char *copy = hn_strdup(text ? text : "");
  if (!copy) {
    o->failed = true;
    return;
  }
  tame(copy);
  hn_str line = {0};
  int at = indent;
  for (const char *p = copy;;) {
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
  if (line.failed) o->failed = true;
  hn_str_free(&line);
  hn_free(copy);
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
  char text[512];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  tame(text);
  size_t i = (t->rows - 1) * t->column_count + column;
  hn_free(t->cells[i]);
  t->cells[i] = hn_strdup(text);
  t->colors[i] = color;
  if (!t->cells[i]) t->failed = true;
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

/* Widths that fit: natural ones, then text columns shrink, then whole columns go (width 0). */
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
    int bytes = sequence((const unsigned char *)p), columns = is_wide(p) ? 2 : 1;
    bytes = bytes ? bytes : 1;
    const bool begins = at + columns <= head;
    if (!begins && !marked) hn_str_puts(&cut, mark);
    marked = marked || !begins;
    if (begins || at >= skip) hn_str_append(&cut, p, (size_t)bytes);
    at += columns;
    p += bytes;
  }
  if (cut.ptr) colored(o, look, color, cut.ptr, cut.len);
  if (cut.failed) o->failed = true;
  hn_str_free(&cut);
}

void hn_cut(hn_str *o, const hn_look *look, hn_color color, const char *text, int width) {
  char *copy = hn_strdup(text ? text : "");
  if (!copy) {
    o->failed = true;
    return;
  }
  tame(copy);
  write_cut(o, look, color, copy, width);
  hn_free(copy);
}

void hn_table_write(hn_str *o, const hn_look *look, hn_table *t) {
  int width[HN_TABLE_COLUMNS];
  if (t->failed) {
    o->failed = true;
    return;
  }
  fit(t, look->width, width);
  for (size_t r = 0; r <= t->rows; r++) {
    bool header = r == 0, first = true;
    size_t line_start = o->len;
    for (size_t c = 0; c < t->column_count; c++) {
      if (!width[c]) continue;
      if (!first) hn_str_puts(o, "  ");
      first = false;
      const char *text = header ? t->columns[c].title : cell_text(t, r - 1, c);
      hn_color color = header ? HN_DIM : t->colors[(r - 1) * t->column_count + c];
      if (!t->columns[c].is_text) {
        spaces(o, width[c] - columns_of(text));
        colored(o, look, color, text, strlen(text));
      } else {
        write_cut(o, look, color, text, width[c]);
        spaces(o, width[c] - columns_of(text));
      }
    }
    while (o->len > line_start && o->ptr[o->len - 1] == ' ') o->ptr[--o->len] = 0;
    hn_str_putc(o, '\n');
  }
}
