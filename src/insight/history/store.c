/* Runs in an SQLite database: write-ahead log, every commit synced, any number of processes at once. */
#include "insight/history/record.h"
#include "insight/history/schema.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/late/late.h"
#include "base/mem.h"
#include "base/os.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 30000 }; /* for other processes' transactions, which take milliseconds */

struct hone_history {
  sqlite3 *db;
  char *path;
  int schema;
  bool write;
  bool begun; /* it has no file yet: db is in `file`, and takes its place with the first run */
  hn_writer file;
};

#define X(field) "\"" #field "\", "
#define COLUMNS HONE_RECORD_TEXTS(X) HONE_RECORD_NUMBERS(X)
static const char columns[] = COLUMNS;
#undef X

bool hone_history_default_path(char *buf, size_t size) {
  if (!buf) return false;
  const char *own = getenv("HONE_HISTORY"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  int n = own && *own          ? snprintf(buf, size, "%s", own)
          : xdg && *xdg == '/' ? snprintf(buf, size, "%s/hone/history.db",
                                          xdg) /* others are to be ignored, its specification says */
          : home && *home      ? snprintf(buf, size, "%s/.local/share/hone/history.db", home)
                               : -1;
  return n > 0 && (size_t)n < size;
}

const char *hone_history_path(const hone_history *h) {
  if (!h) return NULL;
  return h->path;
}

void hone_history_close(hone_history *h) {
  if (!h) return;
  sqlite3_close(h->db);
  if (h->begun) hn_writer_abandon(&h->file);
  hn_free(h->path);
  hn_free(h);
}

/* The path as a URI that reads the file alone, without a log or locks beside it. */
static bool immutable_uri(const char *path, char *buf, size_t size) {
  size_t n = (size_t)snprintf(buf, size, "file:");
  for (; *path; path++) {
    if (n + 4 >= size) return false;
    if (*path == '%' || *path == '?' || *path == '#')
      n += (size_t)snprintf(buf + n, size - n, "%%%02x", *path);
    else
      buf[n++] = *path;
  }
  return (size_t)snprintf(buf + n, size - n, "?immutable=1") < size - n;
}

/* Whether the log beside the file holds something that is not in it yet. Readers leave an empty one. */
static bool has_log(const char *path) {
  char log[4200];
  struct stat st;
  snprintf(log, sizeof log, "%s-wal", path);
  return stat(log, &st) == 0 && st.st_size > 0;
}

static hone_status open_reading(hone_history *h, hone_error *error) {
  char uri[3 * 4096];
  int rc = sqlite3_open_v2(h->path, &h->db, SQLITE_OPEN_READONLY, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_busy_timeout(h->db, WAIT_MS);
  if (rc == SQLITE_OK) rc = sqlite3_exec(h->db, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL);
  if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) && !has_log(h->path) &&
      immutable_uri(h->path, uri, sizeof uri)) {
    sqlite3_close(h->db); /* a folder that cannot be written: nobody else writes there, either */
    rc = sqlite3_open_v2(uri, &h->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
  }
  return rc == SQLITE_OK ? hn_history_inspect(h->db, h->path, &h->schema, error)
                         : hn_history_fail(h->db, rc, h->path, "open the history", error);
}

static hone_status make_folder(const char *path, hone_error *error) {
  const char *slash = strrchr(path, '/');
  if (!slash || slash == path) return HONE_OK;
  char *folder = hn_strdup(path);
  if (!folder) return hn_fail_memory(error, strlen(path), "the history's folder");
  folder[slash - path] = 0;
  hone_status status = hn_mkdirs(folder, error);
  hn_free(folder);
  return status;
}

static hone_status open_writing(hone_history *h, hone_error *error) {
  hone_status status = make_folder(h->path, error);
  if (status != HONE_OK) return status;
  int rc = sqlite3_open_v2(h->path, &h->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_busy_timeout(h->db, WAIT_MS);
  if (rc == SQLITE_OK && sqlite3_db_readonly(h->db, "main") == 1) rc = SQLITE_READONLY;
  if (rc != SQLITE_OK) return hn_history_fail(h->db, rc, h->path, "open the history for writing", error);
  /* Changing the mode does not wait for others by itself. Where no shared memory is to be had (network file
   * systems) the mode stays what it was: slower, as safe. */
  for (int waited = 0; waited < WAIT_MS; waited += 5) {
    rc = sqlite3_exec(h->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    if ((rc & 0xff) != SQLITE_BUSY) break;
    hn_sleep_ms(5);
  }
  if (rc != SQLITE_OK) return hn_history_fail(h->db, rc, h->path, "write to the history", error);
  status = hn_history_exec(h->db, h->path, "PRAGMA synchronous = FULL", "write to the history", error);
  if (status == HONE_OK) status = hn_history_migrate(h->db, h->path, error);
  h->schema = HN_HISTORY_SCHEMA;
  return status;
}

/* Opens what lost its file on the way; what cannot be opened stays closed. */
static hone_status ready(hone_history *h, hone_error *error) {
  if (h->db) return HONE_OK;
  const hone_status status = open_writing(h, error);
  if (status == HONE_OK) return HONE_OK;
  sqlite3_close(h->db);
  h->db = NULL;
  return status;
}

/* A history begins with its first run: what a full disk leaves of it is nothing. Until then no other process
 * knows its file, so it needs no log beside it. */
static hone_status begin(hone_history *h, hone_error *error) {
  char temporary[4200];
  hone_status status = make_folder(h->path, error);
  if (status == HONE_OK) status = hn_writer_open(h->path, &h->file, error);
  if (status != HONE_OK) return status;
  if (!hn_writer_temporary(&h->file, temporary, sizeof temporary)) {
    hn_writer_abandon(&h->file);
    return open_writing(h, error);
  }
  h->begun = true;
  int rc = sqlite3_open_v2(temporary, &h->db, SQLITE_OPEN_READWRITE, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_exec(h->db, "PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);
  if (rc != SQLITE_OK) return hn_history_fail(h->db, rc, h->path, "open the history for writing", error);
  status = hn_history_exec(h->db, h->path, "PRAGMA synchronous = FULL", "write to the history", error);
  if (status == HONE_OK) status = hn_history_migrate(h->db, h->path, error);
  h->schema = HN_HISTORY_SCHEMA;
  return status;
}

/* Gives what was begun its name, unless another process has a history there by now, or the file system gives
 * no second names (*named): then the file at the path is opened, or made, without what was begun. */
static hone_status settle(hone_history *h, bool *named, hone_error *error) {
  const char *slash = strrchr(h->path, '/');
  sqlite3_close(h->db);
  h->db = NULL;
  *named = linkat(h->file.dir, h->file.temp, h->file.dir, slash ? slash + 1 : h->path, 0) == 0;
  if (*named) fsync(h->file.dir);
  hn_writer_abandon(&h->file);
  h->begun = false;
  return ready(h, error);
}

static uint32_t big_endian(const char *p) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) value = value << 8 | (uint8_t)p[i];
  return value;
}

/* What SQLite would let pass: a file of a few bytes (taken for an empty one) and one cut inside of its last
 * page. And what must be refused before SQLite opens it, because that leaves files beside it: a newer schema
 * (bytes 60 and 68 of SQLite's header: user version and application). */
static hone_status check_file(const char *path, uint64_t size, hone_error *error) {
  static const char magic[16] = "SQLite format 3";
  char begin[72] = {0};
  size_t n;
  int f;
  uint64_t bytes;
  hone_status status = hn_file_open(path, NULL, HN_FILE_DATABASE, &f, &bytes, error);
  if (status != HONE_OK) return status;
  status = hn_file_pull(f, begin, sizeof begin, &n, error);
  close(f);
  if (status != HONE_OK) return status;
  if (n && memcmp(begin, magic, sizeof magic) != 0)
    return hn_history_fail(NULL, SQLITE_NOTADB, path, "open the history", error);
  if (n == sizeof begin && !has_log(path) && big_endian(begin + 68) == HN_HISTORY_APPLICATION &&
      (int32_t)big_endian(begin + 60) > HN_HISTORY_SCHEMA)
    return hn_history_newer(path, (int32_t)big_endian(begin + 60), error);
  uint64_t page = (uint64_t)(uint8_t)begin[16] << 8 | (uint8_t)begin[17];
  return n && size % (page > 1 ? page : 65536) && !has_log(path)
             ? hn_history_fail(NULL, SQLITE_CORRUPT, path, "open the history", error)
             : HONE_OK;
}

/* Looks before anything is written: a file that is refused must stay as it is. */
static hone_status check_first(const char *path, hone_error *error) {
  hone_history look = {.path = (char *)path};
  hone_status status = open_reading(&look, error);
  sqlite3_close(look.db);
  return status;
}

hone_status hone_history_open(const char *path, bool write, hone_history **out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_history_open: out may not be NULL");
  char standard[4096];
  struct stat st;
  *out = NULL;
  if (!path && !hone_history_default_path(standard, sizeof standard)) {
    hn_fail(error, HONE_ERROR_USAGE, "no place for the history: neither HOME nor XDG_DATA_HOME is set");
    hn_error_hint(error, "set HONE_HISTORY to a file");
    return HONE_ERROR_USAGE;
  }
  if (!path) path = standard;
  bool there = stat(path, &st) == 0;
  if (!there && !write) {
    hn_fail(error, errno == ENOENT || errno == ENOTDIR ? HONE_ERROR_MISSING : HONE_ERROR_IO, "no history: %s",
            strerror(errno));
    hn_error_where(error, "%s", path);
    hn_error_hint(error, "hone bench MODEL --save begins one");
    return errno == ENOENT || errno == ENOTDIR ? HONE_ERROR_MISSING : HONE_ERROR_IO;
  }
  if (there && !S_ISREG(st.st_mode)) {
    hn_fail(error, HONE_ERROR_INPUT, "no history: not a file");
    hn_error_where(error, "%s", path);
    return HONE_ERROR_INPUT;
  }
  hone_status status = hn_late_need(HN_LATE_LIBRARY_SQLITE, error);
  if (status != HONE_OK) return status;
  hone_history *h = hn_calloc(1, sizeof *h);
  if (!h || !(h->path = hn_strdup(path))) {
    hn_free(h);
    return hn_fail_memory(error, sizeof *h, "the history");
  }
  h->write = write;
  status = there ? check_file(path, (uint64_t)st.st_size, error) : HONE_OK;
  if (status == HONE_OK && write && there && st.st_size > 0) status = check_first(path, error);
  if (status == HONE_OK)
    status = !write ? open_reading(h, error) : there ? open_writing(h, error) : begin(h, error);
  if (status != HONE_OK)
    hone_history_close(h);
  else
    *out = h;
  return status;
}

static int bind_record(sqlite3_stmt *s, const hone_record *r, const char *json, size_t length) {
  int rc = SQLITE_OK, i = 0;
#define X(field)                                                                                             \
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(s, ++i, r->field, -1, SQLITE_STATIC);
  HONE_RECORD_TEXTS(X)
#undef X
#define X(field) /* NaN is stored as NULL */                                                                 \
  if (rc == SQLITE_OK) rc = sqlite3_bind_double(s, ++i, r->field);
  HONE_RECORD_NUMBERS(X)
#undef X
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(s, ++i, (sqlite3_int64)hn_checksum(json, length));
  if (rc == SQLITE_OK) rc = sqlite3_bind_text64(s, ++i, json, length, SQLITE_STATIC, SQLITE_UTF8);
  return rc;
}

/* INSERT INTO runs("commit", ..., checksum, report) VALUES(?, ..., ?, ?) */
static void insert_sql(char *buf, size_t size) {
  size_t n = (size_t)snprintf(buf, size, "INSERT INTO runs(%schecksum, report) VALUES(", columns);
  for (const char *p = columns; *p; p++)
    if (*p == ',') n += (size_t)snprintf(buf + n, size - n, "?, ");
  snprintf(buf + n, size - n, "?, ?)");
}

static hone_status insert(hone_history *h, const hone_record *r, const char *json, size_t length, int64_t *id,
                          hone_error *error) {
  hone_status status = ready(h, error);
  if (status != HONE_OK) return status;
  char sql[1024];
  sqlite3_stmt *s = NULL;
  insert_sql(sql, sizeof sql);
  /* One statement is one transaction; taking the write lock at once avoids a failed upgrade. */
  int rc = sqlite3_exec(h->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = bind_record(s, r, json, length);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  if (rc == SQLITE_DONE) rc = SQLITE_OK;
  int64_t added = sqlite3_last_insert_rowid(h->db);
  if (rc == SQLITE_OK) rc = sqlite3_finalize(s), s = NULL;
  if (rc == SQLITE_OK) rc = sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL);
  if (rc != SQLITE_OK) {
    status = hn_history_fail(h->db, rc, h->path, "save the run", error);
    sqlite3_finalize(s);
    sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
  } else if (id) {
    *id = added;
  }
  return status;
}

hone_status hone_history_add(hone_history *h, const char *json, size_t length, const char *tag, int64_t *id,
                             hone_error *error) {
  hone_records parsed;
  if (!h || !h->write) return hn_fail(error, HONE_ERROR_USAGE, "the history was opened for reading");
  hone_status status = hone_record_parse(json, length, &parsed, error);
  if (status != HONE_OK) return status;
  if (tag) parsed.items[0].tag = tag;
  const bool begun = h->begun;
  status = insert(h, &parsed.items[0], json, length, id, error);
  if (status == HONE_OK && begun) {
    bool named;
    hone_error after = {0};
    const hone_status opened = settle(h, &named, &after);
    /* A run that is in is in, whatever keeps the next ones out. */
    if (!named) status = opened == HONE_OK ? insert(h, &parsed.items[0], json, length, id, error) : opened;
    if (!named && opened != HONE_OK && error) *error = after;
  }
  hone_records_free(&parsed);
  return status;
}

static hone_status read_row(hone_history *h, sqlite3_stmt *s, bool reports, hone_records *out,
                            hone_error *error) {
  hone_record *r = hn_records_add(out);
  int i = 0;
  bool full = r != NULL;
  if (!full) return hn_fail_memory(error, sizeof *r, "runs");
  r->id = sqlite3_column_int64(s, i++);
#define X(field)                                                                                             \
  if (sqlite3_column_type(s, i) != SQLITE_NULL) {                                                            \
    const char *text = (const char *)sqlite3_column_text(s, i);                                              \
    r->field = text ? hn_records_text(out, text, (size_t)sqlite3_column_bytes(s, i)) : NULL;                 \
    full &= r->field != NULL;                                                                                \
  }                                                                                                          \
  i++;
  HONE_RECORD_TEXTS(X)
#undef X
#define X(field)                                                                                             \
  r->field = sqlite3_column_type(s, i) == SQLITE_NULL ? NAN : sqlite3_column_double(s, i);                   \
  i++;
  HONE_RECORD_NUMBERS(X)
#undef X
  if (reports) {
    const char *text = (const char *)sqlite3_column_text(s, i + 1);
    size_t length = (size_t)sqlite3_column_bytes(s, i + 1);
    if (text && sqlite3_column_type(s, i) != SQLITE_NULL &&
        sqlite3_column_int64(s, i) != (sqlite3_int64)hn_checksum(text, length)) {
      hn_fail(error, HONE_ERROR_INPUT, "run %lld of the history is damaged: its report has another checksum",
              (long long)r->id);
      hn_error_where(error, "%s", h->path);
      hn_error_hint(error, "hone history --delete %lld removes it", (long long)r->id);
      return HONE_ERROR_INPUT;
    }
    r->report = text ? hn_records_text(out, text, length) : NULL;
    full &= r->report != NULL;
  }
  return full ? HONE_OK : hn_fail_memory(error, 0, "runs");
}

hone_status hone_history_find(hone_history *h, const hone_history_query *query, hone_records *out,
                              hone_error *error) {
  if (!h || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_history_find: history and out may not be NULL");
  static const hone_history_query everything = {0};
  *out = (hone_records){0};
  const hone_history_query *q = query ? query : &everything;
  if (h->schema == 0) return HONE_OK; /* an empty file */
  hone_status status = ready(h, error);
  if (status != HONE_OK) return status;
  char sql[1600];
  snprintf(sql, sizeof sql,
           "SELECT id, %s%s, %s FROM (SELECT * FROM runs WHERE (?1 = 0 OR id = ?1) AND (?2 IS NULL OR model "
           "GLOB ?2 OR model "
           "GLOB '*/' || ?2) AND (?3 IS NULL OR substr(\"commit\", 1, length(?3)) = ?3) AND (?4 IS NULL OR "
           "tag = ?4) ORDER BY "
           "id DESC LIMIT ?5) ORDER BY id",
           columns, h->schema >= 2 ? "checksum" : "NULL", q->reports ? "report" : "NULL");
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(s, 1, q->id);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(s, 2, q->model, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(s, 3, q->commit, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(s, 4, q->tag, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(s, 5, q->newest ? (sqlite3_int64)q->newest : -1);
  while (rc == SQLITE_OK && status == HONE_OK) {
    rc = sqlite3_step(s);
    if (rc != SQLITE_ROW) break;
    rc = SQLITE_OK;
    status = read_row(h, s, q->reports, out, error);
  }
  if (status == HONE_OK && rc != SQLITE_DONE)
    status = hn_history_fail(h->db, rc, h->path, "read the history", error);
  sqlite3_finalize(s);
  if (status != HONE_OK) hone_records_free(out);
  return status;
}

hone_status hone_history_remove(hone_history *h, const int64_t *ids, size_t n, size_t *removed,
                                hone_error *error) {
  if (!h || (n && !ids))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_history_remove: history and ids may not be NULL");
  if (!h->write) return hn_fail(error, HONE_ERROR_USAGE, "the history was opened for reading");
  hone_status status = ready(h, error);
  if (status != HONE_OK) return status;
  sqlite3_stmt *s = NULL;
  size_t gone = 0;
  int rc = sqlite3_exec(h->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(h->db, "DELETE FROM runs WHERE id = ?1", -1, &s, NULL);
  for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
    rc = sqlite3_bind_int64(s, 1, ids[i]);
    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_DONE) rc = SQLITE_OK;
    gone += rc == SQLITE_OK ? (size_t)sqlite3_changes(h->db) : 0;
    if (rc == SQLITE_OK) rc = sqlite3_reset(s);
  }
  if (rc == SQLITE_OK) rc = sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL);
  status = rc == SQLITE_OK ? HONE_OK : hn_history_fail(h->db, rc, h->path, "delete runs", error);
  sqlite3_finalize(s);
  if (rc != SQLITE_OK) sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
  if (removed) *removed = rc == SQLITE_OK ? gone : 0;
  return status;
}
