#include "insight/history/schema.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Step i leads from schema i to i + 1. Steps are history: they are never edited, only appended. */
static const char *const steps[HN_HISTORY_SCHEMA] = {
    "CREATE TABLE runs(id INTEGER PRIMARY KEY AUTOINCREMENT, \"commit\" TEXT, model TEXT, tag TEXT, "
    "machine TEXT, device TEXT, precision TEXT, flags TEXT, version TEXT, temperature_c_range TEXT, "
    "profiling_date TEXT, batch REAL, threads REAL, avg_latency_ms REAL NOT NULL, median_latency_ms REAL, "
    "p95_latency_ms REAL, cv REAL, throughput_fps REAL, h2d_ms_ratio REAL, post_ms_ratio REAL, "
    "memory_peak_mb REAL, report TEXT NOT NULL);",
    /* A sum of the report finds damage that lies inside of one value; rows from before have none. */
    "ALTER TABLE runs ADD COLUMN checksum INTEGER; CREATE INDEX runs_by_model ON runs(model, id);"};

static bool out_of_space(sqlite3 *db, int rc) {
  int e = db ? sqlite3_system_errno(db) : 0;
  return (rc & 0xff) == SQLITE_FULL ||
         ((rc & 0xff) == SQLITE_IOERR && (e == ENOSPC || e == EDQUOT || e == EFBIG));
}

/* Why nothing can be written beside this file; `otherwise` when something can. */
static int folder_errno(const char *path, int otherwise) {
  char folder[4096];
  int n = snprintf(folder, sizeof folder, "%s", path);
  char *slash = n > 0 && (size_t)n < sizeof folder ? strrchr(folder, '/') : NULL;
  if (slash) slash[slash == folder] = 0;
  return access(slash ? folder : ".", W_OK | X_OK) == 0 ? otherwise : errno;
}

hone_status hn_history_fail(sqlite3 *db, int rc, const char *path, const char *doing, hone_error *error) {
  /* Of a code that SQLite did not give itself its handle knows nothing ("not an error"). */
  const char *why = db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
  hone_status status;
  switch (rc & 0xff) {
  case SQLITE_NOTADB:
    status = hn_fail(error, HONE_ERROR_INPUT, "no history: this file is no SQLite database");
    hn_error_hint(error, "move it away, or set HONE_HISTORY to another file");
    break;
  case SQLITE_CORRUPT:
    status = hn_fail(error, HONE_ERROR_INPUT, "the history is damaged: %s", why);
    hn_error_hint(error, "sqlite3 FILE .recover saves what is left; move the file away and a new one begins");
    break;
  case SQLITE_NOMEM: status = hn_fail_memory(error, 0, "the history"); break;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    status = hn_fail(error, HONE_ERROR_IO, "cannot %s: another process keeps it locked", doing);
    break;
  default:
    if (out_of_space(db, rc)) {
      status = hn_fail(error, HONE_ERROR_IO, "cannot %s: no space left", doing);
      hn_error_hint(error, "nothing was saved; the runs before are safe");
    } else {
      /* Where a file could not be made, SQLite keeps what looking for it said: ask the folder itself. */
      int e = db ? sqlite3_system_errno(db) : 0;
      if ((rc & 0xff) == SQLITE_CANTOPEN) e = folder_errno(path, e);
      status =
          hn_fail(error, HONE_ERROR_IO, "cannot %s: %s%s%s", doing, why, e ? ": " : "", e ? strerror(e) : "");
    }
  }
  hn_error_where(error, "%s", path);
  return status;
}

hone_status hn_history_exec(sqlite3 *db, const char *path, const char *sql, const char *doing,
                            hone_error *error) {
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? HONE_OK : hn_history_fail(db, rc, path, doing, error);
}

/* The first column of the first row: a number, or text into buf. */
static int ask(sqlite3 *db, const char *sql, int64_t *number, char *buf, size_t size) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) {
    const char *text = buf ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (number) *number = sqlite3_column_int64(s, 0);
    if (buf) snprintf(buf, size, "%s", text ? text : "");
    if (buf && !text && sqlite3_column_type(s, 0) != SQLITE_NULL) rc = SQLITE_NOMEM;
  }
  int end = sqlite3_finalize(s);
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? end : rc;
}

static hone_status refuse(const char *path, hone_error *error) {
  hn_error_where(error, "%s", path);
  hn_error_hint(error, "the file was not touched; set HONE_HISTORY to another one");
  return HONE_ERROR_INPUT;
}

hone_status hn_history_newer(const char *path, int64_t schema, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "the history was written by a newer hone");
  hn_error_expected(error, "schema %d or older", HN_HISTORY_SCHEMA);
  hn_error_got(error, "schema %lld", (long long)schema);
  return refuse(path, error);
}

hone_status hn_history_inspect(sqlite3 *db, const char *path, int *schema, hone_error *error) {
  int64_t version = 0, application = 0, objects = 0, runs = 0;
  char found[200] = "";
  const char *doing = "read the history";
  int rc = ask(db, "PRAGMA user_version", &version, NULL, 0);
  if (rc == SQLITE_OK) rc = ask(db, "PRAGMA application_id", &application, NULL, 0);
  if (rc == SQLITE_OK) rc = ask(db, "SELECT count(*) FROM sqlite_master", &objects, NULL, 0);
  if (rc == SQLITE_OK)
    rc = ask(db, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'runs'", &runs, NULL, 0);
  if (rc != SQLITE_OK) return hn_history_fail(db, rc, path, doing, error);
  *schema = (int)version;
  if (!version && !application && !objects) return HONE_OK;
  if (application != HN_HISTORY_APPLICATION) {
    hn_fail(error, HONE_ERROR_INPUT, "no history: another program's SQLite database");
    return refuse(path, error);
  }
  if (version > HN_HISTORY_SCHEMA) return hn_history_newer(path, version, error);
  if (version < 1) {
    hn_fail(error, HONE_ERROR_INPUT, "the history has no schema");
    hn_error_expected(error, "schema 1 to %d", HN_HISTORY_SCHEMA);
    hn_error_got(error, "schema %lld", (long long)version);
    return refuse(path, error);
  }
  /* Structure only; values have their own sums. */
  rc = ask(db, "PRAGMA quick_check(1)", NULL, found, sizeof found);
  if (rc != SQLITE_OK) return hn_history_fail(db, rc, path, doing, error);
  if (strcmp(found, "ok") == 0 && runs == 1) return HONE_OK;
  for (char *p = found; *p; p++)
    if (*p == '\n') *p = ' ';
  hn_fail(error, HONE_ERROR_INPUT, "the history is damaged: %s",
          runs == 1 ? found : "its table of runs is missing");
  hn_error_where(error, "%s", path);
  hn_error_hint(error, "sqlite3 FILE .recover saves what is left; move the file away and a new one begins");
  return HONE_ERROR_INPUT;
}

/* Copies the database as others see it (not what this connection is about to change) to PATH.v<schema>.bak,
 * or the first free name after that: an earlier copy is never overwritten. */
static hone_status back_up(const char *path, int schema, hone_error *error) {
  char name[4096], temporary[4096];
  sqlite3 *from = NULL, *to = NULL;
  hn_writer file;
  const char *doing = "copy the history before its schema changes";
  int n = snprintf(name, sizeof name, "%s.v%d.bak", path, schema);
  for (int k = 1; n > 0 && (size_t)n < sizeof name && hn_path_exists(name); k++)
    n = snprintf(name, sizeof name, "%s.v%d.bak%d", path, schema, k);
  if (n <= 0 || (size_t)n + sizeof file.temp >= sizeof temporary)
    return hn_fail(error, HONE_ERROR_IO, "cannot %s: its name is too long", doing);
  hone_status status = hn_writer_open(name, &file, error);
  if (status != HONE_OK) return status;
  hn_writer_temporary(&file, temporary, sizeof temporary);
  int rc = sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_open_v2(temporary, &to, SQLITE_OPEN_READWRITE, NULL);
  /* A new file needs no journal beside it: it counts when it is whole, or not at all. */
  if (rc == SQLITE_OK) rc = sqlite3_exec(to, "PRAGMA journal_mode = OFF", NULL, NULL, NULL);
  sqlite3_backup *copy = rc == SQLITE_OK ? sqlite3_backup_init(to, "main", from, "main") : NULL;
  if (copy) {
    rc = sqlite3_backup_step(copy, -1);
    int end = sqlite3_backup_finish(copy);
    if (rc == SQLITE_DONE) rc = end;
  } else if (rc == SQLITE_OK) {
    rc = sqlite3_errcode(to);
  }
  status = rc == SQLITE_OK ? HONE_OK : hn_history_fail(to ? to : from, rc, name, doing, error);
  if (sqlite3_close(to) != SQLITE_OK && status == HONE_OK)
    status = hn_fail(error, HONE_ERROR_IO, "cannot %s", doing);
  sqlite3_close(from);
  if (status == HONE_OK) return hn_writer_commit(&file, error);
  hn_writer_abandon(&file);
  return status;
}

static hone_status climb(sqlite3 *db, const char *path, int schema, hone_error *error) {
  const char *doing = "change the history's schema";
  char sql[120];
  hone_status status = HONE_OK;
  for (int i = schema; i < HN_HISTORY_SCHEMA && status == HONE_OK; i++)
    status = hn_history_exec(db, path, steps[i], doing, error);
  snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", HN_HISTORY_APPLICATION,
           HN_HISTORY_SCHEMA);
  return status == HONE_OK ? hn_history_exec(db, path, sql, doing, error) : status;
}

hone_status hn_history_migrate(sqlite3 *db, const char *path, hone_error *error) {
  int schema = 0;
  int64_t version = 0;
  if (ask(db, "PRAGMA user_version", &version, NULL, 0) == SQLITE_OK && version == HN_HISTORY_SCHEMA)
    return HONE_OK;
  /* Another process may do the same at this moment: look again once nobody else can write. */
  hone_status status = hn_history_exec(db, path, "BEGIN IMMEDIATE", "write to the history", error);
  if (status != HONE_OK) return status;
  status = hn_history_inspect(db, path, &schema, error);
  if (status == HONE_OK && schema > 0 && schema < HN_HISTORY_SCHEMA) status = back_up(path, schema, error);
  if (status == HONE_OK && schema < HN_HISTORY_SCHEMA) status = climb(db, path, schema, error);
  if (status == HONE_OK) status = hn_history_exec(db, path, "COMMIT", "write to the history", error);
  if (status != HONE_OK) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}
