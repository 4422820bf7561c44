/* Files: nobody can plant a link where hone writes, writers of one path do not meet, and nothing that is no
 * file is waited for. */
#include "temporary.h"
#include "base/os.h"

#include <hone/file.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Names are random, so a planted link would never be met: here whoever attacks knows the first of them. */
static int foreseen;

ssize_t getrandom(void *to, size_t size, unsigned flags) {
  (void)flags;
  if (foreseen > 0) {
    foreseen--;
    memset(to, 0x41, size);
    return (ssize_t)size;
  }
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, to, size);
  if (fd >= 0) close(fd);
  return n;
}

typedef struct place {
  char folder[112], path[128];
} place;

static int begin(void **state) {
  static place p;
  if (!mkdtemp(temporary(p.folder, sizeof p.folder, "hone-files"))) return -1;
  snprintf(p.path, sizeof p.path, "%s/out", p.folder);
  *state = &p;
  return 0;
}

static int end(void **state) { return temporary_remove(((place *)*state)->folder); }

static const char *in(const place *p, const char *name) {
  static char buf[4][300];
  static int i;
  i = (i + 1) % 4;
  snprintf(buf[i], sizeof buf[i], "%s/%s", p->folder, name);
  return buf[i];
}

static void put(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

static void holds(const char *path, const char *text) {
  char *got;
  size_t n;
  assert_int_equal(hone_file_read(path, 1 << 20, &got, &n, NULL), HONE_OK);
  assert_string_equal(got, text);
  assert_int_equal(n, strlen(text));
  hone_file_free(got);
}

/* Temporary files that were left. */
static int left(const place *p) {
  char command[256];
  snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*.tmp*' -type f)\"", p->folder);
  return system(command);
}

static void planted_links_are_not_followed(void **state) {
  const place *p = *state;
  put(in(p, "victim"), "precious");
  /* The name that comes first, and the one that earlier versions used. */
  assert_int_equal(symlink(in(p, "victim"), in(p, ".hone-4141414141414141.tmp")), 0);
  char old[128];
  snprintf(old, sizeof old, "out.tmp%ld", (long)getpid());
  assert_int_equal(symlink(in(p, "victim"), in(p, old)), 0);
  foreseen = 3;
  assert_int_equal(hn_file_write(p->path, "new", 3, NULL), HONE_OK);
  assert_int_equal(foreseen, 0); /* the planted name was met, and left */
  holds(in(p, "victim"), "precious");
  holds(p->path, "new");
  assert_int_equal(left(p), 0);
  /* Planted everywhere: an error, nothing more. */
  foreseen = 1000;
  hone_error e = {0};
  assert_int_equal(hn_file_write(p->path, "newer", 5, &e), HONE_ERROR_IO);
  foreseen = 0;
  holds(in(p, "victim"), "precious");
  holds(p->path, "new");
}

static void a_link_in_the_place_is_replaced(void **state) {
  const place *p = *state;
  struct stat st;
  put(in(p, "victim"), "precious");
  assert_int_equal(symlink(in(p, "victim"), p->path), 0);
  assert_int_equal(hn_file_write(p->path, "new", 3, NULL), HONE_OK);
  holds(in(p, "victim"), "precious");
  holds(p->path, "new");
  assert_int_equal(lstat(p->path, &st), 0);
  assert_true(S_ISREG(st.st_mode));
  /* What is added to is not reached through a link either. */
  hone_writer *w;
  assert_int_equal(symlink(in(p, "victim"), in(p, "log")), 0);
  assert_int_equal(hone_writer_append(in(p, "log"), &w, NULL), HONE_ERROR_IO);
  holds(in(p, "victim"), "precious");
}

static void secrets_stay_secret(void **state) {
  const place *p = *state;
  struct stat st;
  put(p->path, "old");
  assert_int_equal(chmod(p->path, 0600), 0);
  assert_int_equal(hn_file_write(p->path, "new", 3, NULL), HONE_OK);
  assert_int_equal(stat(p->path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
}

/* ---- eight writers of one path */

enum { WRITERS = 8, TIMES = 40, LENGTH = 20000 };

typedef struct job {
  const char *path;
  int letter, failed;
} job;

static void *write_often(void *user) {
  job *j = user;
  char *text = malloc(LENGTH);
  if (!text) return NULL;
  memset(text, j->letter, LENGTH);
  for (int i = 0; i < TIMES; i++) {
    hn_writer w;
    hone_status status = hn_writer_open(j->path, &w, NULL);
    for (int k = 0; k < 4 && status == HONE_OK; k++) /* others come between */
      status = hn_writer_write(&w, text + k * LENGTH / 4, LENGTH / 4, NULL);
    if (status == HONE_OK) status = hn_writer_commit(&w, NULL);
    j->failed += status != HONE_OK;
  }
  free(text);
  return NULL;
}

/* One writer's text whole, whoever came last. */
static bool is_whole(const char *path) {
  char *text;
  size_t n;
  if (hone_file_read(path, 1 << 20, &text, &n, NULL) != HONE_OK) return false;
  bool good = n == LENGTH;
  for (size_t i = 0; i < n && good; i++) good = text[i] == text[0];
  hone_file_free(text);
  return good;
}

static void threads_write_one_path(void **state) {
  const place *p = *state;
  pthread_t thread[WRITERS];
  job jobs[WRITERS];
  put(p->path, "");
  write_often(&(job){p->path, 'z', 0});
  for (int i = 0; i < WRITERS; i++) {
    jobs[i] = (job){p->path, 'a' + i, 0};
    assert_int_equal(pthread_create(&thread[i], NULL, write_often, &jobs[i]), 0);
  }
  int broken = 0;
  for (int i = 0; i < 500; i++) broken += !is_whole(p->path); /* at any moment, not only in the end */
  for (int i = 0; i < WRITERS; i++) {
    pthread_join(thread[i], NULL);
    assert_int_equal(jobs[i].failed, 0);
  }
  assert_int_equal(broken, 0);
  assert_true(is_whole(p->path));
  assert_int_equal(left(p), 0);
}

static void processes_write_one_path(void **state) {
  const place *p = *state;
  pid_t child[WRITERS];
  for (int i = 0; i < WRITERS; i++) {
    child[i] = fork();
    assert_true(child[i] >= 0);
    if (child[i] == 0) {
      job j = {p->path, 'a' + i, 0};
      write_often(&j);
      _exit(j.failed != 0);
    }
  }
  for (int i = 0; i < WRITERS; i++) {
    int status;
    assert_int_equal(waitpid(child[i], &status, 0), child[i]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  assert_true(is_whole(p->path));
  assert_int_equal(left(p), 0);
}

/* ---- the ends that are no success */

static void abandoned_files_are_gone(void **state) {
  const place *p = *state;
  hone_writer *w, *v;
  put(p->path, "old");
  assert_int_equal(hone_writer_open(p->path, &w, NULL), HONE_OK);
  assert_int_equal(hone_writer_sink(w, "half", 4, NULL), HONE_OK);
  hone_writer_abandon(w);
  assert_int_equal(left(p), 0);
  assert_int_equal(hone_writer_open(p->path, &w, NULL), HONE_OK);
  assert_int_equal(hone_writer_open(in(p, "other"), &v, NULL), HONE_OK);
  assert_int_not_equal(left(p), 0);
  hone_writer_abandon_all();
  assert_int_equal(left(p), 0);
  assert_int_equal(hone_writer_commit(w, NULL), HONE_ERROR_IO); /* its file was taken away */
  hone_writer_abandon(v);
  holds(p->path, "old");
  assert_int_equal(mkdir(in(p, "folder"), 0700), 0);
  assert_int_equal(hn_file_write(in(p, "folder"), "x", 1, NULL), HONE_ERROR_IO);
  assert_int_equal(hn_file_write(in(p, "folder/"), "x", 1, NULL), HONE_ERROR_IO);
  assert_int_equal(hn_file_write("", "x", 1, NULL), HONE_ERROR_IO);
  assert_int_equal(hn_file_write(in(p, "none/x"), "x", 1, NULL), HONE_ERROR_IO);
  assert_int_equal(hn_file_write(in(p, "out/x"), "x", 1, NULL), HONE_ERROR_IO);
  char *path = malloc(5000);
  memset(path, 'p', 4999), path[4999] = 0;
  assert_int_equal(hn_file_write(path, "x", 1, NULL), HONE_ERROR_IO);
  free(path);
  assert_int_equal(left(p), 0);
}

/* ---- in place */

static void pipes_and_descriptors_are_written_to(void **state) {
  const place *p = *state;
  char got[16] = "", path[32];
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
  assert_int_equal(hn_file_write(path, "pipe", 4, NULL), HONE_OK);
  assert_int_equal(read(ends[0], got, sizeof got), 4);
  assert_memory_equal(got, "pipe", 4);
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(hn_file_write("/dev/null", "x", 1, NULL), HONE_OK);
  struct stat st;
  assert_int_equal(stat("/dev/null", &st), 0);
  assert_true(S_ISCHR(st.st_mode));
  assert_int_equal(mkfifo(in(p, "fifo"), 0600), 0);
  const char *fifo = in(p, "fifo");
  const pid_t child = fork();
  if (child == 0) _exit(hn_file_write(fifo, "fifo", 4, NULL) != HONE_OK);
  int fd = open(fifo, O_RDONLY);
  assert_int_equal(read(fd, got, sizeof got), 4);
  close(fd);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(stat(fifo, &st), 0);
  assert_true(S_ISFIFO(st.st_mode));
  /* "> file" and /dev/stdout: what the shell opened gets the text, behind what is in it, and stays. */
  put(p->path, "");
  fd = open(p->path, O_WRONLY | O_CLOEXEC);
  assert_int_equal(write(fd, "head ", 5), 5);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  assert_int_equal(hn_file_write(path, "body", 4, NULL), HONE_OK);
  close(fd);
  holds(p->path, "head body");
  hone_writer *w;
  assert_int_equal(hone_writer_append(p->path, &w, NULL), HONE_OK);
  assert_int_equal(hone_writer_sink(w, " tail", 5, NULL), HONE_OK);
  assert_int_equal(hone_writer_commit(w, NULL), HONE_OK);
  holds(p->path, "head body tail");
}

/* ---- reading */

static void refused(const char *path, const char *got) {
  char *data;
  size_t n;
  hn_file f;
  hone_error e = {0};
  alarm(20); /* waiting would be the fault */
  assert_int_equal(hn_file_map(path, NULL, HN_FILE_DATA, &f, &e), HONE_ERROR_INPUT);
  assert_string_equal(e.what, "not a regular file");
  assert_string_equal(e.got, got);
  assert_string_equal(e.where, path);
  assert_int_equal(hone_file_read(path, 100, &data, &n, &e), HONE_ERROR_INPUT);
  assert_null(data);
  assert_int_equal(hn_file_begin(path, &f, 4), 0);
  alarm(0);
}

static void only_files_are_read(void **state) {
  const place *p = *state;
  assert_int_equal(mkfifo(in(p, "fifo"), 0600), 0);
  refused(in(p, "fifo"), "a pipe");
  assert_int_equal(symlink(in(p, "fifo"), in(p, "link")), 0);
  refused(in(p, "link"), "a pipe");
  refused("/dev/zero", "a device");
  refused("/dev/null", "a device");
  refused(p->folder, "a folder");
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"}; /* paths of them are short */
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0), here = open(".", O_PATH | O_DIRECTORY);
  assert_int_equal(chdir(p->folder), 0);
  const int bound = bind(fd, (struct sockaddr *)&address, sizeof address);
  assert_int_equal(fchdir(here), 0);
  close(here);
  assert_int_equal(bound, 0);
  refused(in(p, "socket"), "a socket");
  close(fd);
}

static void sizes_are_bounded(void **state) {
  const place *p = *state;
  hone_error e = {0};
  hn_file f;
  char *data;
  size_t n;
  put(p->path, "12345");
  assert_int_equal(hone_file_read(p->path, 4, &data, &n, &e), HONE_ERROR_INPUT);
  assert_string_equal(e.expected, "at most 4 bytes");
  assert_int_equal(hone_file_read(p->path, 5, &data, &n, &e), HONE_OK);
  hone_file_free(data);
  assert_int_equal(truncate(p->path, (off_t)1 << 30), 0); /* a sparse one: no disk has it */
  assert_int_equal(hn_file_map(p->path, NULL, HN_FILE_TEXT, &f, &e), HONE_ERROR_INPUT);
  assert_string_equal(e.what, "too large for a text");
  assert_int_equal(hn_file_map(p->path, NULL, HN_FILE_CACHE, &f, &e), HONE_ERROR_INPUT);
  assert_int_equal(hn_file_map(p->path, NULL, HN_FILE_MODEL, &f, &e), HONE_OK);
  hn_file_unmap(&f);
  put(p->path, "");
  assert_int_equal(hn_file_map(p->path, NULL, HN_FILE_TEXT, &f, &e), HONE_OK);
  assert_non_null(f.data);
  hn_file_unmap(&f);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(planted_links_are_not_followed),
      TEST(a_link_in_the_place_is_replaced),
      TEST(secrets_stay_secret),
      TEST(threads_write_one_path),
      TEST(processes_write_one_path),
      TEST(abandoned_files_are_gone),
      TEST(pipes_and_descriptors_are_written_to),
      TEST(only_files_are_read),
      TEST(sizes_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
