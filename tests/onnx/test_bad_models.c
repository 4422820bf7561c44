/* Every bad model ends with the one line that tests/golden/bad_models.txt has, with exit status 3, in about a
 * second of processor time at most (more where processors are slower) and within 64 MiB.
 *
 *   test_bad_models [--update]   --update writes the golden file anew: read the difference before committing
 * it */
#include "temporary.h"
#include "base/os.h"
#include "onnx/bad_models.h"

#include <hone/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { YARDSTICKS = 12 };
static const long MAX_KIB = 64 << 10;

#if defined(__SANITIZE_ADDRESS__)
enum { SLOW = 1 }; /* shadow memory and checks: limits mean nothing */
#else
enum { SLOW = 0 };
#endif

static double cpu_seconds(const struct rusage *use) {
  return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
         1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

/* Processor time of a fixed piece of work, some 0.08 s at 3 GHz: what a second is depends on the machine. */
static double yardstick(void) {
  double least = 1e9;
  for (int k = 0; k < 3; k++) {
    struct rusage from, to;
    volatile uint32_t hash = 2166136261u;
    uint32_t h = hash;
    getrusage(RUSAGE_SELF, &from);
    for (uint32_t i = 0; i < 64u << 20; i++) h = (h ^ (i & 255)) * 16777619u;
    hash = h;
    getrusage(RUSAGE_SELF, &to);
    const double took = cpu_seconds(&to) - cpu_seconds(&from);
    if (took < least) least = took;
  }
  return least;
}

/* Loads the file, as every command does, in a process of its own; the line goes to `line`, its processor time
 * to `seconds`. */
static int load_apart(const char *path, char *line, size_t size, double *seconds, long *kib) {
  int fd[2], status = 0;
  struct rusage use;
  if (pipe(fd) != 0) return -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    hone_model *model = NULL, *bound = NULL;
    hone_error error = {0};
    char text[1400] = "";
    hone_status s = hone_model_load(path, &model, &error);
    if (s == HONE_OK) s = hone_model_bind(model, NULL, 0, 1, &bound, NULL, &error);
    hone_model_release(bound);
    hone_model_release(model);
    if (s != HONE_OK) hone_error_format(&error, text, sizeof text);
    size_t n = strlen(text);
    _exit(write(fd[1], text, n) == (ssize_t)n ? hone_status_exit_code(s) : 99);
  }
  close(fd[1]);
  size_t n = 0;
  for (ssize_t r; (r = read(fd[0], line + n, size - 1 - n)) > 0;) n += (size_t)r;
  line[n] = 0;
  close(fd[0]);
  wait4(child, &status, 0, &use);
  *seconds = cpu_seconds(&use);
  *kib = use.ru_maxrss;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void write_file(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "w");
  if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0) exit(6);
}

/* The golden file's line for a case, without its name; NULL: none. */
static char *golden_line(char *golden, const char *name) {
  size_t n = strlen(name);
  for (char *p = golden; p && *p; p = strchr(p, '\n'), p += p != NULL)
    if (strncmp(p, name, n) == 0 && p[n] == ':') return p + n + 2;
  return NULL;
}

int main(int argc, char **argv) {
  const char *golden_path = "tests/golden/bad_models.txt";
  char cwd[4096], folder[128];
  hn_file golden_file = {0};
  bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
  if (!getcwd(cwd, sizeof cwd) ||
      (!update && hn_file_map(golden_path, NULL, HN_FILE_TEXT, &golden_file, NULL) != HONE_OK)) {
    fprintf(stderr, "run this from the repository's root\n");
    return 2;
  }
  char *golden = strndup((const char *)golden_file.data, golden_file.size);
  FILE *out = update ? fopen(golden_path, "w") : NULL;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-bad")) || chdir(folder) != 0) return 6;
  int bad = 0;
  const double limit = YARDSTICKS * yardstick();
  long base = 0; /* what a process of ours has before it does anything */
  double ignored;
  char nothing[1400];
  write_file("none.onnx", "", 0);
  load_apart("none.onnx", nothing, sizeof nothing, &ignored, &base);
  for (size_t i = 0; i < n_bad_models; i++) {
    char path[128], line[2048];
    double seconds = 0;
    long kib = 0;
    snprintf(path, sizeof path, "%s.onnx", bad_models[i].name);
    pb *m = bad_models[i].make();
    write_file(path, m->ptr, m->len);
    pb_done();
    int status = load_apart(path, line, sizeof line, &seconds, &kib);
    const char *why = status != 3                      ? "exit status is not 3"
                      : !line[0] || strchr(line, '\n') ? "not exactly one line"
                      : !strstr(line, path)            ? "the line does not name the file"
                      : !SLOW && seconds > limit       ? "too much time"
                      : !SLOW && kib - base > MAX_KIB  ? "more than 64 MiB"
                                                       : NULL;
    if (out) fprintf(out, "%s: %s\n", bad_models[i].name, line);
    char *want = out ? NULL : golden_line(golden, bad_models[i].name);
    if (!out && !why &&
        (!want || strlen(line) != strcspn(want, "\n") || strncmp(line, want, strlen(line)) != 0))
      why = "another line than in the golden file";
    if (!why) continue;
    bad++;
    printf("FAILED %s: %s (status %d, %.2f s, %ld KiB)\n  got:  %s\n  want: %.*s\n", bad_models[i].name, why,
           status, seconds, kib, line, want ? (int)strcspn(want, "\n") : 0, want ? want : "");
  }
  char *const clean[] = {"rm", "-rf", folder, NULL};
  pid_t child = fork();
  if (child == 0) {
    execvp("rm", clean);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  if (out) fclose(out);
  free(golden);
  hn_file_unmap(&golden_file);
  printf("%zu bad models, %d wrong\n", n_bad_models, bad);
  return bad != 0;
}
