#include "insight/import/read/database.h"

#include "base/error.h"
#include "base/late/late.h"
#include "base/os.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

hone_status hn_database_fail(hn_database *d, hone_error *error, const char *where) {
  int code = sqlite3_errcode(d->db);
  hone_status status =
      code == SQLITE_NOMEM
          ? hn_fail_memory(error, 0, "reading a database")
          : hn_fail(error, HONE_ERROR_INPUT, "the database cannot be read: %s", sqlite3_errmsg(d->db));
  hn_error_where(error, where ? "%s: table %s" : "%s: list of tables", d->path, where);
  return status;
}

/* Nothing but looking at tables. */
static int permit(void *unused, int action, const char *a, const char *b, const char *database,
                  const char *inside) {
  (void)unused;
  (void)b;
  (void)database;
  switch (action) {
  case SQLITE_SELECT: return SQLITE_OK;
  case SQLITE_READ: return inside ? SQLITE_DENY : SQLITE_OK; /* inside of a view or trigger */
  case SQLITE_PRAGMA: return strcmp(a, "table_info") == 0 ? SQLITE_OK : SQLITE_DENY;
  default: return SQLITE_DENY;
  }
}

static bool put_limits(sqlite3 *db) {
  static const struct {
    int limit, value;
  } limits[] = {{SQLITE_LIMIT_LENGTH, 64 << 20},
                {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
                {SQLITE_LIMIT_COLUMN, 256},
                {SQLITE_LIMIT_EXPR_DEPTH, 16},
                {SQLITE_LIMIT_COMPOUND_SELECT, 2},
                {SQLITE_LIMIT_VDBE_OP, 25000},
                {SQLITE_LIMIT_FUNCTION_ARG, 8},
                {SQLITE_LIMIT_ATTACHED, 0},
                {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
                {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
                {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    sqlite3_limit(db, limits[i].limit, limits[i].value);
  return sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) == SQLITE_OK &&
         sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) == SQLITE_OK &&
         sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-8000", NULL,
                      NULL, NULL) == SQLITE_OK &&
         sqlite3_set_authorizer(db, permit, NULL) == SQLITE_OK;
}

static uint32_t big_endian(const uint8_t *at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
  return value;
}

/* The size that the header of 100 bytes gives the file; 0: it does not say (versions before 3.7). */
static uint64_t size_in_header(const uint8_t *header) {
  const uint32_t page = big_endian(header + 16, 2), pages = big_endian(header + 28, 4);
  const bool valid = big_endian(header + 24, 4) == big_endian(header + 92, 4);
  return valid ? (uint64_t)pages * (page == 1 ? 65536 : page) : 0;
}

static hone_status check_file(hn_database *d, const char *path, hone_error *error) {
  uint8_t header[100] = {0};
  size_t n;
  int file;
  hone_status status = hn_file_open(path, NULL, HN_FILE_DATABASE, &file, &d->size, error);
  if (status != HONE_OK) return status;
  status = hn_file_pull(file, header, sizeof header, &n, error);
  close(file);
  if (status != HONE_OK) return status;
  if (n < 16 || memcmp(header, "SQLite format 3", 16) != 0) {
    status = hn_fail(error, HONE_ERROR_INPUT, "the file is no SQLite database");
    hn_error_where(error, "%s: offset 0", path);
  } else if (n < sizeof header || d->size < size_in_header(header)) {
    status = hn_fail(error, HONE_ERROR_INPUT, "the database ends too early");
    hn_error_where(error, "%s: offset %llu", path, (unsigned long long)d->size);
    hn_error_expected(error, "%llu bytes", (unsigned long long)(n < 100 ? 100 : size_in_header(header)));
    hn_error_hint(error, "was the file cut off while it was written or copied?");
  }
  return status;
}

hone_status hn_database_open(hn_database *d, const char *path, hone_error *error) {
  *d = (hn_database){.path = path};
  hone_status status = check_file(d, path, error);
  if (status == HONE_OK) status = hn_late_need(HN_LATE_LIBRARY_SQLITE, error);
  if (status) return status;
  hn_str uri = {0};
  hn_str_puts(&uri, path[0] == '/' ? "file://" : "file:");
  for (const char *p = path; *p; p++)
    if (strchr("?#%", *p) || (unsigned char)*p < 0x20)
      hn_str_printf(&uri, "%%%02X", (unsigned char)*p);
    else
      hn_str_putc(&uri, *p);
  hn_str_puts(&uri, "?mode=ro&immutable=1");
  if (uri.failed)
    status = hn_fail_memory(error, strlen(path), "a path");
  else if (sqlite3_open_v2(uri.ptr, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                           NULL) ||
           !put_limits(d->db))
    status = hn_database_fail(d, error, NULL);
  hn_str_free(&uri);
  if (status) hn_database_close(d);
  return status;
}

void hn_database_close(hn_database *d) {
  if (d->db) sqlite3_close(d->db);
  d->db = NULL;
}

static bool ask(hn_database *d, const char *sql, const char *name) {
  sqlite3_stmt *stmt = NULL;
  hn_mem_foreign_begin();
  bool found = sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
               sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_step(stmt) == SQLITE_ROW;
  hn_mem_foreign_end();
  sqlite3_finalize(stmt);
  return found;
}

bool hn_database_has(hn_database *d, const char *table) {
  return ask(d, "SELECT 1 FROM sqlite_master WHERE type='table' AND rootpage>0 AND name=?1", table);
}

bool hn_database_has_column(hn_database *d, const char *table, const char *column) {
  char sql[160];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA table_info(\"%w\")", table);
  sqlite3_stmt *stmt = NULL;
  bool found = false;
  hn_mem_foreign_begin();
  if (sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) == SQLITE_OK)
    while (!found && sqlite3_step(stmt) == SQLITE_ROW) {
      const char *name = (const char *)sqlite3_column_text(stmt, 1);
      found = name && sqlite3_stricmp(name, column) == 0;
    }
  hn_mem_foreign_end();
  sqlite3_finalize(stmt);
  return found;
}

hone_status hn_database_select(hn_database *d, const char *table, const char *const *columns,
                               sqlite3_stmt **rows, hone_error *error) {
  *rows = NULL;
  if (!hn_database_has(d, table)) return HONE_OK;
  hn_str sql = {0};
  hn_str_puts(&sql, "SELECT ");
  for (size_t i = 0; columns[i]; i++)
    hn_str_printf(&sql, hn_database_has_column(d, table, columns[i]) ? "%s\"%s\"" : "%sNULL", i ? "," : "",
                  columns[i]);
  hn_str_printf(&sql, " FROM \"%s\"", table);
  hone_status status = HONE_OK;
  if (sql.failed)
    status = hn_fail_memory(error, sql.len, "a query");
  else if (sqlite3_prepare_v2(d->db, sql.ptr, -1, rows, NULL) != SQLITE_OK)
    status = hn_database_fail(d, error, table);
  hn_str_free(&sql);
  return status;
}

hone_status hn_database_next(hn_database *d, const char *table, sqlite3_stmt *rows, bool *more,
                             hone_error *error) {
  /* A row takes four bytes at least: with more of them, pages are used again and again. */
  if (++d->rows > d->size / 4) {
    hone_status status =
        hn_fail(error, HONE_ERROR_INPUT, "the database has more rows than a file of its size can hold");
    hn_error_where(error, "%s: table %s", d->path, table);
    return status;
  }
  int code = sqlite3_step(rows);
  *more = code == SQLITE_ROW;
  return code == SQLITE_ROW || code == SQLITE_DONE ? HONE_OK : hn_database_fail(d, error, table);
}
