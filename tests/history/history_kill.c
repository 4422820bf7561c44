/* history_kill N: writers that add runs to one history as fast as they can are killed (SIGKILL) N times at
 * random moments. Every run whose writer had seen HONE_OK must be there afterwards, once, in a database that
 * is whole.
 *
 * A writer tells that a run is in by one byte-exact line through a pipe, which outlives it. */
#include <hone/hone.h>

#include "temporary.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 4, MOST = 1 << 20 };

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static int die(const char *what) {
  fprintf(stderr, "history_kill: %s\n", what);
  return 1;
}

/* Adds runs until it is killed; the tag is unique and told once the run is in. */
static void write_forever(const char *path, int pipe, unsigned writer) {
  hone_history *h;
  hone_error error = {0};
  char json[4000], tag[16];
  if (hone_history_open(path, true, &h, &error) != HONE_OK) {
    fprintf(stderr, "writer: %s: %s\n", error.where, error.what);
    _exit(3);
  }
  for (unsigned i = 0;; i++) {
    int n = snprintf(json, sizeof json, "{\"model\": \"m\", \"avg_latency_ms\": %u, \"note\": \"", i + 1);
    int fill = (int)(writer * 7 + i * 131) % 3000; /* runs of one page and of several */
    memset(json + n, 'x', (size_t)fill);
    n += fill + snprintf(json + n + fill, sizeof json - (size_t)(n + fill), "\"}");
    snprintf(tag, sizeof tag, "%07u%07u\n", writer % 10000000, i % 10000000);
    tag[14] = 0;
    if (hone_history_add(h, json, (size_t)n, tag, NULL, &error) != HONE_OK) {
      fprintf(stderr, "writer: %s: %s\n", error.where, error.what);
      _exit(3);
    }
    tag[14] = '\n';
    if (write(pipe, tag, 15) != 15) _exit(4); /* shorter than PIPE_BUF: whole or not at all */
  }
}

static int by_text(const void *a, const void *b) { return memcmp(a, b, 14); }

/* All tags that were told, sorted, against those in the database, sorted by it. */
static int compare(const char *path, char (*told)[15], size_t n, unsigned kills) {
  sqlite3 *db;
  sqlite3_stmt *s;
  size_t found = 0, rows = 0;
  qsort(told, n, sizeof *told, by_text);
  if (sqlite3_open(path, &db) != SQLITE_OK) return die("cannot open the database");
  if (sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL) != SQLITE_OK ||
      sqlite3_step(s) != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0)
    return die("the database is damaged");
  sqlite3_finalize(s);
  if (sqlite3_prepare_v2(db, "SELECT tag, count(*) FROM runs GROUP BY tag ORDER BY tag", -1, &s, NULL) !=
      SQLITE_OK)
    return die("cannot read the runs");
  while (sqlite3_step(s) == SQLITE_ROW) {
    const char *tag = (const char *)sqlite3_column_text(s, 0);
    if (sqlite3_column_int(s, 1) != 1) return die("a run is there twice");
    rows++;
    if (found < n && memcmp(told[found], tag, 14) == 0) found++;
  }
  sqlite3_finalize(s);
  sqlite3_close(db);
  printf(
      "%u kills, %zu runs acknowledged, %zu of them in the history, %zu more in it that nobody was told of\n",
      kills, n, found, rows - found);
  return found == n && n > 0 ? 0 : die("an acknowledged run is lost");
}

int main(int argc, char **argv) {
  unsigned kills = argc > 1 ? (unsigned)atoi(argv[1]) : 80, done = 0, writer = 0;
  char folder[128], path[160];
  static char told[MOST / 15][15];
  size_t n = 0;
  int ends[2];
  pid_t pid[WRITERS] = {0};
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-kill")) || pipe(ends) != 0)
    return die("no folder or pipe");
  snprintf(path, sizeof path, "%s/history.db", folder);
  state ^= (uint64_t)time(NULL);
  while (done < kills) {
    for (int i = 0; i < WRITERS; i++) {
      if (pid[i]) continue;
      writer++;
      if ((pid[i] = fork()) == 0) {
        close(ends[0]);
        write_forever(path, ends[1], writer);
      }
      if (pid[i] < 0) return die("no process");
    }
    long wait = (long)(draw() % 6000000) + (done < 4 ? 20000000 : 0); /* the first ones create the file */
    nanosleep(&(struct timespec){0, wait}, NULL);
    int victim = (int)(draw() % WRITERS), status;
    kill(pid[victim], SIGKILL);
    while (waitpid(pid[victim], &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) return die("a writer failed by itself");
    pid[victim] = 0;
    done++;
    char lines[65536]; /* what waits in the pipe; it must not fill up, or writers would stand still */
    struct timespec now = {0, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    while (pselect(ends[0] + 1, &set, NULL, NULL, &now, NULL) > 0) {
      ssize_t got = read(ends[0], lines, sizeof lines / 15 * 15);
      for (ssize_t k = 0; k + 15 <= got && n < sizeof told / sizeof *told; k += 15)
        memcpy(told[n++], lines + k, 15);
    }
  }
  for (int i = 0; i < WRITERS; i++)
    if (pid[i]) {
      kill(pid[i], SIGKILL);
      waitpid(pid[i], NULL, 0);
      done++;
    }
  close(ends[1]);
  for (char line[15]; read(ends[0], line, 15) == 15 && n < sizeof told / sizeof *told;)
    memcpy(told[n++], line, 15);
  int code = compare(path, told, n, done);
  return temporary_remove(folder) != 0 ? 1 : code;
}
