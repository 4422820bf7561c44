#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char *slurp(FILE *f) {
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *text = calloc((size_t)n + 1, 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)n, f), n);
  fclose(f);
  return text;
}

/* Whether the process answers interrupts by now; one that comes earlier ends it without a word. */
static bool catches_interrupts(pid_t pid) {
  char path[64], line[256];
  unsigned long long caught = 0;
  snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f) && sscanf(line, "SigCgt: %llx", &caught) != 1) {
  }
  if (f) fclose(f);
  return caught >> (SIGINT - 1) & 1;
}

static void sleep_ms(int ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/* How long a process takes to begin depends on the machine. */
static void await_beginning(pid_t pid) {
  for (int ms = 0; ms < 60000 && !catches_interrupts(pid); ms++) {
    siginfo_t ended = {0};
    if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == pid) return;
    sleep_ms(1);
  }
}

process process_run(const char *folder, int interrupt_ms, const char *const *argv) {
  const char *all[32] = {HONE_BINARY};
  int n = 1;
  while (argv[n - 1] && n < 31) all[n] = argv[n - 1], n++;
  FILE *out = tmpfile(), *err = tmpfile();
  assert_non_null(out);
  assert_non_null(err);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    if (folder && chdir(folder) != 0) _exit(99);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(fileno(out), 1);
    dup2(fileno(err), 2);
    execv(HONE_BINARY, (char *const *)all);
    _exit(99);
  }
  if (interrupt_ms > 0) {
    await_beginning(pid);
    sleep_ms(interrupt_ms);
    kill(pid, SIGINT);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  process p = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
  p.out = slurp(out);
  p.err = slurp(err);
  return p;
}

void process_free(process *p) {
  free(p->out);
  free(p->err);
  *p = (process){0};
}

json_t *process_json(const process *p) {
  json_error_t e;
  json_t *doc = json_loads(p->out, 0, &e);
  if (!doc) fail_msg("no JSON (%s, line %d): %.200s | %.200s", e.text, e.line, p->out, p->err);
  return doc;
}

int count_lines(const char *text) {
  int n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}
