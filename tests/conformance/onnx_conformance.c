/* onnx_conformance [--engine plan|eval|saved|cuda|twin] [--seconds S] [--at-least N] [--on-host N] [--quiet]
 * [--doubted NAME] DIR...
 *
 * Runs every ONNX backend test below the folders and ends with "passed N, refused N, wrong N". Tests named
 * --doubted may answer otherwise: their expected values contradict their own model. Each test runs
 * in a process of its own, so that a crash or a hang is that test's verdict and no more. Exit status: 0; 1
 * when a test is wrong or fewer than N passed, or when more than
 * --on-host of those that passed on the device left steps to the host; 2 for wrong usage. */
#include "one_test.h"

#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef HN_VEC(char *) names;
typedef HN_VEC(const char *) words;

static const struct {
  const char *name;
  engine_fn *run;
} engines[] = {
    {"plan", run_plan}, {"eval", run_eval}, {"saved", run_saved}, {"cuda", run_cuda}, {"twin", run_twin}};

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Appends all folders below `folder` that hold a model.onnx. */
static void collect(const char *folder, names *out) {
  hn_arena arena = {0};
  struct stat st;
  const char *path = hn_arena_printf(&arena, "%s/model.onnx", folder);
  if (!path || (stat(path, &st) == 0 && !hn_vec_push(out, strdup(folder)))) exit(6);
  DIR *d = opendir(folder);
  if (!d) goto done;
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || strncmp(e->d_name, "test_data_set", 13) == 0) continue;
    path = hn_arena_printf(&arena, "%s/%s", folder, e->d_name);
    if (path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) collect(path, out);
  }
  closedir(d);
done:
  hn_arena_free(&arena);
}

/* The verdict of the child that writes to fd: one byte and the reason. */
static verdict await(pid_t child, int fd, double seconds, char *reason, size_t size) {
  size_t n = 0;
  char buf[2048];
  int status = 0;
  struct pollfd p = {.fd = fd, .events = POLLIN};
  while (n < sizeof buf - 1) {
    if (poll(&p, 1, (int)(seconds * 1000) + 5000) == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      snprintf(reason, size, "did not end within %.0f s", seconds);
      return WRONG;
    }
    ssize_t r = read(fd, buf + n, sizeof buf - 1 - n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) break;
    n += (size_t)r;
  }
  buf[n] = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && n > 0) {
    snprintf(reason, size, "%.*s", (int)size - 1, buf + 1);
    return (verdict)(buf[0] - '0');
  }
  if (WIFSIGNALED(status))
    snprintf(reason, size, "crashed with signal %d", WTERMSIG(status));
  else
    snprintf(reason, size, "ended with status %d", WEXITSTATUS(status));
  return WRONG;
}

static verdict run_apart(const char *folder, engine_fn *engine, double seconds, char *reason, size_t size) {
  int fd[2];
  fflush(stdout);
  if (pipe(fd) != 0) return snprintf(reason, size, "no pipe"), WRONG;
  pid_t child = fork();
  if (child < 0) return snprintf(reason, size, "no process"), WRONG;
  if (child == 0) {
    char text[1024], line[1100];
    close(fd[0]);
    verdict v = run_test(folder, engine, seconds, text, sizeof text);
    if (v == PASSED) snprintf(text, sizeof text, "%s", steps_on_host());
    int n = snprintf(line, sizeof line, "%d%s", v, text);
    _exit(write(fd[1], line, (size_t)n) == n ? 0 : 9);
  }
  close(fd[1]);
  verdict v = await(child, fd[0], seconds, reason, size);
  close(fd[0]);
  return v;
}

static bool doubted(const words *list, const char *folder) {
  const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
  for (size_t i = 0; i < list->len; i++)
    if (strcmp(list->ptr[i], name) == 0) return true;
  return false;
}

static int usage(const char *why) {
  fprintf(stderr,
          "onnx_conformance: %s\nusage: onnx_conformance [--engine plan|eval|saved|cuda|twin] [--seconds S] "
          "[--at-least N] [--on-host N] [--quiet] [--doubted NAME] DIR...\n",
          why);
  return 2;
}

int main(int argc, char **argv) {
  static const char *const said[VERDICTS] = {"passed", "refused", "wrong"};
  engine_fn *engine = engines[0].run;
  double seconds = 60;
  long at_least = 0, most_on_host = -1, on_host = 0, count[VERDICTS] = {0};
  bool quiet = false;
  names tests = {0};
  words doubts = {0};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--quiet") == 0) {
      quiet = true;
    } else if (strncmp(argv[i], "--", 2) != 0) {
      struct stat st;
      if (stat(argv[i], &st) != 0 || !S_ISDIR(st.st_mode)) return usage("no such folder");
      collect(argv[i], &tests);
    } else if (!value) {
      return usage("an option without its value");
    } else {
      i++;
      if (strcmp(argv[i - 1], "--engine") == 0) {
        engine = NULL;
        for (size_t k = 0; k < sizeof engines / sizeof *engines; k++)
          if (strcmp(engines[k].name, value) == 0) engine = engines[k].run;
        if (!engine) return usage("no such engine");
      } else if (strcmp(argv[i - 1], "--seconds") == 0)
        seconds = atof(value);
      else if (strcmp(argv[i - 1], "--at-least") == 0)
        at_least = atol(value);
      else if (strcmp(argv[i - 1], "--on-host") == 0)
        most_on_host = atol(value);
      else if (strcmp(argv[i - 1], "--doubted") == 0 && hn_vec_push(&doubts, value))
        continue;
      else
        return usage("unknown option");
    }
  }
  if (!tests.len) return usage("no folder with a model.onnx");
  qsort(tests.ptr, tests.len, sizeof *tests.ptr, by_name);
  for (size_t i = 0; i < tests.len; i++) {
    char reason[1200];
    verdict v = run_apart(tests.ptr[i], engine, seconds, reason, sizeof reason);
    if (v == WRONG && doubted(&doubts, tests.ptr[i])) {
      printf("doubted %s: %s\n", tests.ptr[i], reason);
      free(tests.ptr[i]);
      continue;
    }
    count[v < VERDICTS ? v : WRONG]++;
    if (v != PASSED && !(quiet && v == REFUSED)) printf("%-8s%s: %s\n", said[v], tests.ptr[i], reason);
    if (v == PASSED && reason[0]) {
      on_host++;
      if (!quiet) printf("on host %s: %s\n", tests.ptr[i], reason);
    }
    free(tests.ptr[i]);
  }
  hn_vec_free(&tests);
  hn_vec_free(&doubts);
  printf("passed %ld, refused %ld, wrong %ld\n", count[PASSED], count[REFUSED], count[WRONG]);
  if (engine == run_cuda) printf("%ld of them with steps on the host\n", on_host);
  if (most_on_host >= 0 && on_host > most_on_host) return 1;
  return count[WRONG] || count[PASSED] < at_least ? 1 : 0;
}
