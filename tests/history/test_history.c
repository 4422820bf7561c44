/* The store of runs: what goes in comes out, older files climb, newer and hostile ones are refused as they
 * are. */
#include <hone/hone.h>

#include "temporary.h"
#include "base/mem.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char path[160];

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-history"))) return -1;
  snprintf(path, sizeof path, "%s/sub/h.db", folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static char report[400];
static const char *make_report(const char *model, const char *commit, double ms) {
  snprintf(
      report, sizeof report,
      "{\"model\": \"%s\", \"commit\": \"%s\", \"avg_latency_ms\": %g, \"p95_latency_ms\": %g, \"batch\": 4, "
      "\"profiling_date\": \"2026-01-02T03:04:05Z\", \"other\": [1, 2, 3]}",
      model, commit, ms, ms * 1.25);
  return report;
}

static hone_history *open_history(bool write) {
  hone_history *h = NULL;
  hone_error e = {0};
  if (hone_history_open(path, write, &h, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return h;
}

static int64_t add(hone_history *h, const char *model, const char *commit, double ms, const char *tag) {
  hone_error e = {0};
  int64_t id = 0;
  const char *json = make_report(model, commit, ms);
  if (hone_history_add(h, json, strlen(json), tag, &id, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return id;
}

static size_t count(hone_history *h, hone_history_query q) {
  hone_records r;
  hone_error e = {0};
  assert_int_equal(hone_history_find(h, &q, &r, &e), HONE_OK);
  size_t n = r.count;
  hone_records_free(&r);
  return n;
}

/* A range of temperatures is an array in a report; older ones had a text. Both are kept alike. */
static void test_temperature_range(void **state) {
  (void)state;
  static const struct {
    const char *json, *kept;
  } cases[] = {{"{\"avg_latency_ms\":2,\"temperature_c_range\":[41,55.5]}", "41-55.5"},
               {"{\"avg_latency_ms\":2,\"temperature_c_range\":\"41-55\"}", "41-55"},
               {"{\"avg_latency_ms\":2,\"temperature_c_range\":null,\"post_ms_ratio\":null}", NULL}};
  hone_records r;
  hone_error e = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(hone_record_parse(cases[i].json, strlen(cases[i].json), &r, &e), HONE_OK);
    assert_int_equal(r.items[0].temperature_c_range != NULL, cases[i].kept != NULL);
    if (cases[i].kept) assert_string_equal(r.items[0].temperature_c_range, cases[i].kept);
    assert_true(r.items[0].post_ms_ratio != r.items[0].post_ms_ratio);
    hone_records_free(&r);
  }
  static const char *const wrong[] = {"[41]", "[41,\"x\"]", "5"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char json[80];
    snprintf(json, sizeof json, "{\"avg_latency_ms\":2,\"temperature_c_range\":%s}", wrong[i]);
    assert_int_equal(hone_record_parse(json, strlen(json), &r, &e), HONE_ERROR_INPUT);
  }
}

static void test_round_trip(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  hone_records r;
  hone_error e = {0};
  assert_int_equal(add(h, "models/a.onnx", "abc123", 2, NULL), 1);
  assert_int_equal(add(h, "b.onnx", "abd", 3, "nightly"), 2);
  assert_int_equal(add(h, "a.onnx", "zzz", 4, "nightly"), 3);
  hone_history_close(h);
  h = open_history(false);
  assert_int_equal(hone_history_find(h, &(hone_history_query){.reports = true}, &r, &e), HONE_OK);
  assert_int_equal(r.count, 3);
  assert_int_equal(r.items[0].id, 1);
  assert_string_equal(r.items[0].model, "models/a.onnx");
  assert_string_equal(r.items[0].commit, "abc123");
  assert_null(r.items[0].tag);
  assert_true(r.items[0].p95_latency_ms == 2.5 && r.items[0].median_latency_ms == 2 && r.items[0].batch == 4);
  assert_true(r.items[0].threads != r.items[0].threads); /* not said: NaN */
  assert_string_equal(r.items[2].report, make_report("a.onnx", "zzz", 4));
  hone_records_free(&r);
  assert_int_equal(count(h, (hone_history_query){.model = "a.onnx"}), 2); /* also as the path's last part */
  assert_int_equal(count(h, (hone_history_query){.model = "*"}), 3);
  assert_int_equal(count(h, (hone_history_query){.commit = "ab"}), 2);
  assert_int_equal(count(h, (hone_history_query){.commit = "b"}), 0);
  assert_int_equal(count(h, (hone_history_query){.tag = "nightly"}), 2);
  assert_int_equal(count(h, (hone_history_query){.newest = 2}), 2);
  assert_int_equal(count(h, (hone_history_query){.id = 2}), 1);
  /* Text of a filter is data. */
  assert_int_equal(count(h, (hone_history_query){.tag = "' OR 1 = 1 --"}), 0);
  assert_int_equal(hone_history_add(h, "{}", 2, NULL, NULL, &e), HONE_ERROR_USAGE);
  hone_history_close(h);
  h = open_history(true);
  size_t removed = 9;
  assert_int_equal(hone_history_remove(h, (const int64_t[]){3, 77}, 2, &removed, &e), HONE_OK);
  assert_int_equal(removed, 1);
  assert_int_equal(add(h, "a.onnx", "zzz", 4, NULL), 4); /* numbers are not used again */
  hone_history_close(h);
}

static void expect_no_report(const char *json, const char *words) {
  hone_records r;
  hone_error e = {0};
  assert_int_equal(hone_record_parse(json, strlen(json), &r, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, words));
  assert_null(r.impl);
}

static void test_reports(void **state) {
  (void)state;
  expect_no_report("", "no report");
  expect_no_report("[1]", "not a JSON object");
  expect_no_report("{\"avg_latency_ms\": 1", "no report");
  expect_no_report("{}", "no latency");
  expect_no_report("{\"avg_latency_ms\": 0}", "no latency");
  expect_no_report("{\"avg_latency_ms\": \"5\"}", "no number");
  expect_no_report("{\"avg_latency_ms\": 5, \"model\": 7}", "no text");
  expect_no_report("{\"avg_latency_ms\": 5, \"cv\": -1}", "0 or more");
  expect_no_report("{\"avg_latency_ms\": 5, \"avg_latency_ms\": 6}", "no report");
  /* What bench wrote before it had the flat fields, and a baseline written by hand. */
  hone_records r;
  hone_error e = {0};
  const char *old = "{\"latency_ms\": {\"median\": 2, \"mean\": 3, \"p95\": 4, \"cv\": 0.5}}",
             *hand = "{\"avg_latency_ms\": 5.87}";
  assert_int_equal(hone_record_parse(old, strlen(old), &r, &e), HONE_OK);
  assert_true(r.items[0].median_latency_ms == 2 && r.items[0].avg_latency_ms == 3 && r.items[0].cv == 0.5);
  hone_records_free(&r);
  assert_int_equal(hone_record_parse(hand, strlen(hand), &r, &e), HONE_OK);
  assert_true(r.items[0].median_latency_ms == 5.87);
  hone_records_free(&r);
}

static void run_sql(const char *file, const char *sql) {
  sqlite3 *db;
  char *why = NULL;
  assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s", why);
  sqlite3_close(db);
}

static int64_t ask(const char *file, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *s;
  assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  int64_t v = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return v;
}

/* A file as the first schema wrote it. */
static const char first_schema[] = "PRAGMA application_id = 1213156933; CREATE TABLE runs(id INTEGER PRIMARY "
                                   "KEY AUTOINCREMENT, \"commit\" TEXT, model TEXT, tag TEXT, "
                                   "machine TEXT, device TEXT, precision TEXT, flags TEXT, version TEXT, "
                                   "temperature_c_range TEXT, profiling_date TEXT, batch REAL, "
                                   "threads REAL, avg_latency_ms REAL NOT NULL, median_latency_ms REAL, "
                                   "p95_latency_ms REAL, cv REAL, throughput_fps REAL, "
                                   "h2d_ms_ratio REAL, post_ms_ratio REAL, memory_peak_mb REAL, report TEXT "
                                   "NOT NULL); PRAGMA user_version = 1;"
                                   "INSERT INTO runs(model, avg_latency_ms, median_latency_ms, report) "
                                   "VALUES('old.onnx', 7, 7, '{\"avg_latency_ms\": 7}')";

static void make_folder(void) {
  char sub[80];
  snprintf(sub, sizeof sub, "%s/sub", folder);
  mkdir(sub, 0777);
}

static void test_migration(void **state) {
  (void)state;
  char copy[192], second[192];
  make_folder();
  run_sql(path, first_schema);
  snprintf(copy, sizeof copy, "%s.v1.bak", path);
  snprintf(second, sizeof second, "%s.v1.bak1", path);
  hone_history *h = open_history(false); /* reading does not climb */
  assert_int_equal(count(h, (hone_history_query){.reports = true}), 1);
  hone_history_close(h);
  assert_int_equal(ask(path, "PRAGMA user_version"), 1);
  assert_int_not_equal(access(copy, F_OK), 0);
  h = open_history(true);
  add(h, "new.onnx", "c", 8, NULL);
  assert_int_equal(count(h, (hone_history_query){.reports = true}), 2);
  hone_history_close(h);
  assert_int_equal(ask(path, "PRAGMA user_version"), 2);
  assert_int_equal(ask(copy, "PRAGMA user_version"), 1);
  assert_int_equal(ask(copy, "SELECT count(*) FROM runs WHERE model = 'old.onnx'"), 1);
  assert_int_equal(ask(copy, "SELECT count(*) FROM runs"), 1);
  /* A second old file of that name does not cost the first one's copy. */
  unlink(path);
  run_sql(path, first_schema);
  h = open_history(true);
  hone_history_close(h);
  assert_int_equal(access(second, F_OK), 0);
}

static char *slurp(const char *file, size_t *size) {
  FILE *f = fopen(file, "rb");
  assert_non_null(f);
  static char bytes[1 << 20];
  *size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  char *copy = malloc(*size + 1);
  assert_non_null(copy);
  memcpy(copy, bytes, *size);
  return copy;
}

/* Refused for reading and for writing with one error that holds the words, and not a byte of it changed. */
static void expect_refused(const char *words) {
  size_t before, after;
  char *a = slurp(path, &before);
  for (int write = 0; write < 2; write++) {
    hone_history *h = NULL;
    hone_error e = {0};
    assert_int_equal(hone_history_open(path, write, &h, &e), HONE_ERROR_INPUT);
    assert_null(h);
    if (!strstr(e.what, words)) fail_msg("'%s' (wanted '%s')", e.what, words);
    assert_string_equal(e.where, path);
  }
  char *b = slurp(path, &after);
  assert_int_equal(before, after);
  assert_memory_equal(a, b, before);
  free(a);
  free(b);
}

static void put(const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

static void test_refusals(void **state) {
  (void)state;
  make_folder();
  run_sql(path, "PRAGMA application_id = 1213156933; CREATE TABLE runs(what); PRAGMA user_version = 3");
  expect_refused("newer hone");
  unlink(path);
  /* Nor are files left beside one that was in use with a log: SQLite makes them when it opens it. */
  run_sql(path, "PRAGMA journal_mode = WAL; PRAGMA application_id = 1213156933; CREATE TABLE runs(what); "
                "PRAGMA user_version = 3");
  expect_refused("newer hone");
  char beside[300];
  snprintf(beside, sizeof beside, "%s-shm", path);
  assert_int_not_equal(access(beside, F_OK), 0);
  unlink(path);
  run_sql(path, "CREATE TABLE bookmarks(url)");
  expect_refused("another program's");
  unlink(path);
  const char *text =
      "this is a text, and long enough to be looked at as if it were the first page of a database, which "
      "has a header of one hundred bytes.\n";
  put(text, strlen(text));
  expect_refused("no SQLite database");
  put("short", 5);
  expect_refused("no SQLite database");
  unlink(path);
  run_sql(path, "PRAGMA application_id = 1213156933; CREATE TABLE other(x); PRAGMA user_version = 2");
  expect_refused("table of runs is missing");
  unlink(path);
  mkdir(path, 0777);
  hone_history *h;
  hone_error e = {0};
  assert_int_equal(hone_history_open(path, true, &h, &e), HONE_ERROR_INPUT);
  rmdir(path);
  /* An empty file is an empty history. */
  put("", 0);
  h = open_history(false);
  assert_int_equal(count(h, (hone_history_query){0}), 0);
  hone_history_close(h);
  h = open_history(true);
  add(h, "a", "b", 1, NULL);
  hone_history_close(h);
  unlink(path);
  assert_int_equal(hone_history_open(path, false, &h, &e), HONE_ERROR_MISSING);
  assert_int_equal(hone_history_open("/proc/hone/history.db", true, &h, &e), HONE_ERROR_IO);
  assert_int_equal(hone_history_open("/proc/hone/history.db", false, &h, &e), HONE_ERROR_MISSING);
}

/* Every cut and every damaged page is an error or an answer, never a crash; a cut is never taken for whole.
 */
static void test_damage(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  for (int i = 0; i < 40; i++) add(h, "model-with-a-long-name-that-fills-pages.onnx", "c", 1 + i, NULL);
  hone_history_close(h);
  size_t n;
  char *whole = slurp(path, &n);
  assert_true(n > 8192);
  for (size_t cut = 1; cut < n; cut += n / 23) {
    put(whole, cut);
    hone_error e = {0};
    hone_status s = hone_history_open(path, false, &h, &e);
    if (s == HONE_OK) fail_msg("cut at %zu of %zu was taken for whole", cut, n);
    assert_int_equal(s, HONE_ERROR_INPUT);
    assert_true(e.what[0] && !strchr(e.what, '\n'));
  }
  size_t refused = 0;
  for (size_t at = 100; at + 64 < n; at += n / 61) {
    char *bad = malloc(n);
    memcpy(bad, whole, n);
    memset(bad + at, 0xa5, 64);
    put(bad, n);
    free(bad);
    hone_records r;
    hone_error e = {0};
    hone_status s = hone_history_open(path, false, &h, &e);
    if (s == HONE_OK) {
      s = hone_history_find(h, &(hone_history_query){.reports = true}, &r, &e);
      hone_records_free(&r);
      hone_history_close(h);
    }
    if (s != HONE_OK) assert_true(s == HONE_ERROR_INPUT && e.what[0] && e.where[0]);
    refused += s != HONE_OK;
  }
  assert_true(refused > 10); /* most pages hold something */
  free(whole);
}

/* A byte inside of a stored report. */
static void test_damaged_report(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  add(h, "a", "b", 1, NULL);
  hone_history_close(h);
  run_sql(path, "UPDATE runs SET report = replace(report, '\"other\"', '\"0ther\"')");
  hone_records r;
  hone_error e = {0};
  h = open_history(false);
  assert_int_equal(count(h, (hone_history_query){0}), 1);
  assert_int_equal(hone_history_find(h, &(hone_history_query){.reports = true}, &r, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "run 1 of the history is damaged"));
  hone_history_close(h);
}

/* The disk is full from some write on: an error, and what was in before is whole. */
static void test_full_disk(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  for (int i = 0; i < 5; i++) add(h, "a", "b", 1 + i, NULL);
  hone_history_close(h);
  for (rlim_t limit = 4096; limit <= 65536; limit += 4096) {
    pid_t pid = fork();
    if (pid == 0) {
      signal(SIGXFSZ, SIG_IGN);
      setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
      hone_error e = {0};
      hone_status s = hone_history_open(path, true, &h, &e);
      for (int i = 0; s == HONE_OK && i < 200; i++) {
        const char *json = make_report("full", "b", 1);
        s = hone_history_add(h, json, strlen(json), NULL, NULL, &e);
      }
      bool said = s == HONE_ERROR_IO &&
                  (strstr(e.what, "no space left") || strstr(e.what, "disk I/O error")) && e.where[0];
      _exit(said ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail_msg("limit %lu: status %d", (unsigned long)limit, status);
    h = open_history(false);
    assert_int_equal(count(h, (hone_history_query){.model = "a", .reports = true}), 5);
    hone_history_close(h);
  }
}

/* A folder in which nothing can be created. As root permissions do not hold anybody back: then only the way
 * is tested. */
static void test_read_only_folder(void **state) {
  (void)state;
  char sub[80];
  hone_history *h = open_history(true);
  add(h, "a", "b", 1, NULL);
  hone_history_close(h);
  snprintf(sub, sizeof sub, "%s/sub", folder);
  chmod(folder, 0755); /* for others to get there at all */
  chmod(path, 0444);
  chmod(sub, 0555);
  pid_t pid = fork();
  if (pid == 0) {
    hone_error e = {0};
    if (geteuid() == 0 && setuid(65534) != 0) _exit(0);
    if (hone_history_open(path, false, &h, &e) != HONE_OK) {
      fprintf(stderr, "%s: %s\n", e.where, e.what);
      _exit(1);
    }
    hone_records r;
    if (hone_history_find(h, NULL, &r, &e) != HONE_OK || r.count != 1) _exit(2);
    hone_records_free(&r);
    hone_history_close(h);
    if (hone_history_open(path, true, &h, &e) != HONE_ERROR_IO) _exit(3);
    _exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  chmod(sub, 0777);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static hone_status keep(void *user, const char *data, size_t n, hone_error *error) {
  (void)error;
  char **text = user;
  *text = realloc(*text, n + 1);
  memcpy(*text, data, n);
  (*text)[n] = 0;
  return HONE_OK;
}

static void test_html(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  hone_records r;
  hone_error e = {0};
  char *page = NULL;
  add(h, "<script>alert(1)</script>", "'\\\"><img src=x onerror=alert(1)>", 1, "</style><script>x</script>");
  add(h, "<script>alert(1)</script>", "b", 1.2, NULL);
  assert_int_equal(hone_history_find(h, NULL, &r, &e), HONE_OK);
  assert_int_equal(hone_history_html(&r, keep, &page, &e), HONE_OK);
  assert_null(strstr(page, "<script"));
  assert_null(strstr(page, "<img"));
  assert_non_null(strstr(page, "&#60;script&#62;alert(1)"));
  assert_non_null(strstr(page, "default-src 'none'"));
  assert_non_null(strstr(page, "</html>"));
  free(page);
  page = NULL;
  assert_int_equal(hone_history_html(&(hone_records){0}, keep, &page, &e), HONE_OK);
  assert_non_null(strstr(page, "No runs"));
  free(page);
  hone_records_free(&r);
  hone_history_close(h);
}

/* Each allocation of hone's own fails once. */
static void test_out_of_memory(void **state) {
  (void)state;
  hone_history *h = open_history(true);
  add(h, "a", "b", 1, "t");
  hone_history_close(h);
  bool reached = true;
  for (uint64_t n = 1; reached && n < 200; n++) {
    hone_records r = {0};
    hone_error e = {0};
    char *page = NULL;
    hn_mem_fail_after(n);
    hone_status s = hone_history_open(path, false, &h, &e);
    if (s == HONE_OK) {
      s = hone_history_find(h, &(hone_history_query){.reports = true}, &r, &e);
      if (s == HONE_OK) s = hone_history_html(&r, keep, &page, &e);
      hone_history_close(h);
    }
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    if (reached) assert_int_equal(s, HONE_ERROR_MEMORY);
    free(page);
    hone_records_free(&r);
  }
  assert_false(reached);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_temperature_range), TEST(test_round_trip), TEST(test_reports),        TEST(test_migration),
      TEST(test_refusals),          TEST(test_damage),     TEST(test_damaged_report), TEST(test_full_disk),
      TEST(test_read_only_folder),  TEST(test_html),       TEST(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
