/* import_bench grow SAMPLE MB FILE: a trace of that size from a small one.
 * import_bench run LIMIT_MB HONE FILE...: `HONE diagnose FILE...`; prints speed and peak memory, exit 1 when
 * it fails or needs more memory (0: any). */
#include "importers/trace_grow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int run(double limit_mb, char **command, int count) {
  char *argv[64] = {command[0], "diagnose"};
  double mb = 0;
  for (int i = 1; i < count && i < 60; i++) {
    struct stat st;
    argv[i + 1] = command[i];
    if (stat(command[i], &st) == 0) mb += (double)st.st_size / 1e6;
  }
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
  }
  int status = -1;
  struct rusage used = {0};
  wait4(child, &status, 0, &used);
  clock_gettime(CLOCK_MONOTONIC, &end);
  double s = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
  double peak = (double)used.ru_maxrss * 1024 / 1e6;
  printf("| %s | %.0f | %.2f | %.0f | %.0f |\n",
         strrchr(command[1], '/') ? strrchr(command[1], '/') + 1 : command[1], mb, s, mb / s, peak);
  return !WIFEXITED(status) || WEXITSTATUS(status) || (limit_mb > 0 && peak > limit_mb);
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "grow") == 0) {
    size_t copies = trace_grow(argv[2], (size_t)(atof(argv[3]) * 1e6), argv[4]);
    if (!copies) return fprintf(stderr, "cannot grow %s to %s\n", argv[2], argv[4]), 1;
    return 0;
  }
  if (argc >= 5 && strcmp(argv[1], "run") == 0) return run(atof(argv[2]), argv + 3, argc - 3);
  return fprintf(stderr, "usage: import_bench grow SAMPLE MB FILE | run LIMIT_MB HONE FILE...\n"), 2;
}
