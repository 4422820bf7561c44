/* Foreign SQLite files, read as what they are: data of a stranger. Opened read-only and immutable (nothing is
 * written beside them), with limits and an authorizer that permits reading tables alone: views, triggers and
 * functions in their schema never run. */
#ifndef HN_INSIGHT_IMPORT_DATABASE_H
#define HN_INSIGHT_IMPORT_DATABASE_H

#include "base/late/sqlite.h"

#include <hone/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hn_database {
  sqlite3 *db;
  const char *path;
  uint64_t size, rows; /* of the file; how many were read so far */
} hn_database;

hone_status hn_database_open(hn_database *d, const char *path, hone_error *error);
void hn_database_close(hn_database *d); /* zeroed: nothing */

/* Is there a table (not a view) of this name? */
bool hn_database_has(hn_database *d, const char *table);
/* Has the table this column? */
bool hn_database_has_column(hn_database *d, const char *table, const char *column);

/* What the last call to SQLite failed with, as an error of this file and table (or NULL). */
hone_status hn_database_fail(hn_database *d, hone_error *error, const char *table);

/* Selects columns of a table (list ended by NULL); those that it lacks read as NULL. *rows is NULL when there
 * is no such table. To be ended with sqlite3_finalize. */
hone_status hn_database_select(hn_database *d, const char *table, const char *const *columns,
                               sqlite3_stmt **rows, hone_error *error);
/* The next row; *more is false behind the last. A damaged file is one error with its place. */
hone_status hn_database_next(hn_database *d, const char *table, sqlite3_stmt *rows, bool *more,
                             hone_error *error);

#endif
