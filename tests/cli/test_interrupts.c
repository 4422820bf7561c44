/* The first interrupt waits for what runs, a second one does not; what comes twice at once counts once. */
#include "temporary.h"
#include "cli/terminal/interrupts.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void sleep_ms(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/* A process that waits for a step that takes long, with a file half written. */
static pid_t waiting(const char *path) {
  int ready[2];
  char go;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cli_signals(NULL);
    cli_hold(true);
    hone_writer *file;
    if (hone_writer_open(path, &file, NULL) != HONE_OK || hone_writer_sink(file, "half", 4, NULL) != HONE_OK)
      _exit(1);
    if (write(ready[1], "", 1) != 1) _exit(1);
    for (int i = 0; i < 100; i++) sleep_ms(100);
    _exit(cli_interrupted() ? 3 : 4);
  }
  assert_int_equal(read(ready[0], &go, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

/* Files of the folder, without . and .. */
static int files(const char *folder) {
  DIR *d = opendir(folder);
  int n = -2;
  assert_non_null(d);
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

static void second_interrupt_ends(void **state) {
  (void)state;
  char folder[112], path[128];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-interrupt")));
  snprintf(path, sizeof path, "%s/out", folder);
  pid_t child = waiting(path);
  int status;
  kill(child, SIGTERM);
  kill(child, SIGINT); /* at once: the same wish */
  sleep_ms(450);
  assert_int_equal(waitpid(child, &status, WNOHANG), 0);
  assert_int_equal(files(folder), 1);
  kill(child, SIGTERM);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 130);
  assert_int_equal(files(folder), 0);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(second_interrupt_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
