/* Reading tables of text with a header row: ',' ';' or tab (found out from the header), quotation marks,
 * CRLF, byte order mark, blank lines; rows may be shorter or longer than the header. Columns are found by
 * name, never by position: products and versions order them differently. */
#ifndef HN_INSIGHT_IMPORT_CSV_H
#define HN_INSIGHT_IMPORT_CSV_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "insight/import/read/source.h"

typedef struct hn_csv_column {
  const char *name; /* "Task Duration" of "Task Duration(us)" */
  const char *unit; /* "us"; "" when the header has none */
} hn_csv_column;

typedef struct hn_csv {
  hn_source *source;
  char separator;
  bool decimal_comma; /* numbers are written as 1.234,5 or 1 234,5 */
  hn_csv_column *columns;
  size_t column_count;
  uint64_t line;         /* where the current row starts */
  bool line_ended;       /* a line feed closed it, not the end of the file */
  hn_str text;           /* the current row's fields, each ended by a zero */
  HN_VEC(size_t) fields; /* where in the text each starts */
  hn_arena arena;        /* the header */
} hn_csv;

/* Reads the header row: the first one that is not blank. */
hone_status hn_csv_open(hn_csv *csv, hn_source *source, hone_error *error);
/* The next row that is not blank; *more is false at the end. */
hone_status hn_csv_next(hn_csv *csv, bool *more, hone_error *error);
void hn_csv_close(hn_csv *csv); /* zeroed: nothing */

/* Index of the first column of that name (case does not matter, '_' is ' '); -1: none. Of several spellings
 * the first that exists; the list ends with NULL. */
int hn_csv_find(const hn_csv *csv, const char *name);
int hn_csv_find_any(const hn_csv *csv, const char *const *names);
/* Nanoseconds of a unit of that column's header; `absent` when the header names none. */
double hn_csv_unit_ns(const hn_csv *csv, int column, double absent);

/* The current row's text in a column, without blanks and quotation marks around it; NULL when the column is
 * -1, missing in this row, empty or "N/A". */
const char *hn_csv_text(const hn_csv *csv, int column);
/* The same with numbers as programs write them: in a table of decimal commas "1.234,5" is "1234.5". */
const char *hn_csv_digits(const hn_csv *csv, int column, char buffer[64]);
/* Its number; absent when it has none. */
double hn_csv_number(const hn_csv *csv, int column, double absent);

/* HONE_ERROR_INPUT at the current row: "k.csv: line 7: ...". */
hone_status hn_csv_fail(const hn_csv *csv, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
