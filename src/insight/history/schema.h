/* What a history's file looks like, and how files of earlier versions get there. */
#ifndef HN_INSIGHT_SCHEMA_H
#define HN_INSIGHT_SCHEMA_H

#include "base/late/sqlite.h"

#include <hone/history.h>

/* "HONE": tells a history from other programs' databases. */
#define HN_HISTORY_APPLICATION 0x484f4e45
enum { HN_HISTORY_SCHEMA = 2 };

/* An SQLite result as an error: one line that says what to do. rc is what a call returned on db (which may be
 * NULL). */
hone_status hn_history_fail(sqlite3 *db, int rc, const char *path, const char *doing, hone_error *error);

/* The refusal of a file that a newer hone wrote. */
hone_status hn_history_newer(const char *path, int64_t schema, hone_error *error);

/* Runs statements without results. */
hone_status hn_history_exec(sqlite3 *db, const char *path, const char *sql, const char *doing,
                            hone_error *error);

/* Reads the schema's number (0: an empty database) and refuses what is damaged, foreign or newer. Changes
 * nothing. */
hone_status hn_history_inspect(sqlite3 *db, const char *path, int *schema, hone_error *error);

/* Brings a database that is open for writing to the newest schema, in one transaction, after a copy of an
 * older file; nothing to do when it is there already. */
hone_status hn_history_migrate(sqlite3 *db, const char *path, hone_error *error);

#endif
