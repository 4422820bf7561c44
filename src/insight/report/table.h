/* Tables and coloured text for a terminal. */
#ifndef HN_INSIGHT_TABLE_H
#define HN_INSIGHT_TABLE_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum hn_color { HN_PLAIN, HN_BOLD, HN_DIM, HN_RED, HN_YELLOW, HN_GREEN, HN_CYAN } hn_color;

/* How text may look on this terminal. */
typedef struct hn_look {
  int width;
  bool colors, unicode;
  bool zh; /* in Chinese */
} hn_look;

/* A text in the language of the report; both stand side by side. */
#define HN_IN(look, en, chinese) ((look)->zh ? (chinese) : (en))

/* One column. Text columns flex: what is left of the width goes to them. */
typedef struct hn_column {
  const char *title;
  bool is_text; /* left-aligned, may be cut; else right-aligned and never cut */
  int least;    /* a text column is not made narrower than this */
  int priority; /* when the width does not suffice, columns with the largest number go first; 0 never goes */
} hn_column;

enum { HN_TABLE_COLUMNS = 16 };

typedef struct hn_table {
  hn_column columns[HN_TABLE_COLUMNS];
  size_t column_count;
  char **cells; /* row-major, owned */
  hn_color *colors;
  size_t rows, capacity;
  bool failed;
} hn_table;

void hn_table_column(hn_table *t, const char *title, bool is_text, int least, int priority);
/* Starts a row; cells follow from the left. */
void hn_table_row(hn_table *t);
void hn_table_cell(hn_table *t, size_t column, hn_color color, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void hn_table_write(hn_str *o, const hn_look *look, hn_table *t);
void hn_table_free(hn_table *t);

/* printf whose %s arguments are escaped (base/text.h): texts go to a terminal through this and the functions
 * below, never through hn_str_printf. */
void hn_show(hn_str *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same in a colour. */
void hn_paint(hn_str *o, const hn_look *look, hn_color color, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for at most this many columns of a text; the middle of a longer one goes. */
void hn_cut(hn_str *o, const hn_look *look, hn_color color, const char *text, int width);
/* A heading with a rule under it. */
void hn_heading(hn_str *o, const hn_look *look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Paragraph, indented and wrapped at the width. */
void hn_paragraph(hn_str *o, const hn_look *look, int indent, hn_color color, const char *text);
/* A bar of `cells` characters for a share 0..1. */
void hn_bar(hn_str *o, const hn_look *look, double share, int cells);

#endif
