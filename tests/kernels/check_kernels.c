/* check_kernels: walks kernels.def and proves every kernel through its family's adapter.
 *
 * usage: check_kernels [--bench [--markdown]] [--filter TEXT] [--list] [--fills N] [--expect-failure]
 *        check_kernels --device cuda [--tactic NAME] [--shard I/N] [--once | --coverage] [--filter TEXT] [-v]
 * On a device the tactics are the kernels: with --device, odd sizes (tests/cuda/shapes.txt) go through all of
 * them, by what check_tactics does with its cases.
 * --fills: only the first N kinds of values (enum ck_fill), and all but the first in some cases alone.
 * Sanitizers watch addresses, which no value changes, and conversions, for which two kinds are enough.
 * --expect-failure ends at the first failure with exit 0, and with 1 when there is none: for seeded
 * faults. Kernels above this machine's tier (or above HONE_CPU) are named and skipped.  Exit 0: all kernels
 * passed; 1: a kernel failed or has no test; 2: wrong usage. */
#include "check_internal.h"
#include "expect_failure.h"
#include "tactics/tactic_case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/kernels/features.h"

#define FAMILY(name) extern const ck_family ck_family_##name;
#include "backends/cpu/families.def"
#undef FAMILY

static const ck_family *const families[] = {
#define FAMILY(name) &ck_family_##name,
#include "backends/cpu/families.def"
#undef FAMILY
    NULL};

static ck state;
static bool expect_failure;

static const ck_family *find_family(const char *name) {
  for (const ck_family *const *f = families; *f; f++)
    if (!strcmp((*f)->family, name)) return *f;
  return NULL;
}

/* An access beyond a buffer, or a trap of a sanitizer: say where, and end; there is nothing to return to. */
static void on_fault(int sig) {
  char line[320];
  int n = snprintf(line, sizeof line, "FAIL %s: %s: %s (signal %d)\n",
                   state.kernel ? state.kernel->name : "?", state.label,
                   sig == SIGILL
                       ? "an unknown instruction, or behaviour that is undefined (preset ubsan says which)"
                       : "access outside a buffer",
                   sig);
  if (write(STDOUT_FILENO, line, (size_t)n) < 0) _exit(1);
  _exit(expect_failure && sig != SIGILL ? 0 : 1);
}

/* What a fault does to the other cases is not asked. */
static void on_noticed(const ck *c) {
  printf("noticed: %s fails\n", c->kernel->name);
  fflush(stdout);
  _exit(0);
}

static uint64_t seed_of(const char *name) {
  uint64_t h = 1469598103934665603u;
  while (*name) h = (h ^ (unsigned char)*name++) * 1099511628211u;
  return h | 1;
}

extern const char ck_device_shapes[]; /* the text of tests/cuda/shapes.txt */

static int check_device(int argc, char **argv) {
  device_check o = {.filter = "", .shards = 1, .sizes = true};
  int words = 1;
  for (int i = 1; i < argc && words > 0; i += words) words = read_device_option(&o, argv + i, argc - i);
  if (words <= 0) {
    fprintf(stderr, "usage: check_kernels " DEVICE_USAGE " [--filter TEXT] [-v]\n");
    return 2;
  }
  case_file shapes = {.file = fmemopen((char *)(uintptr_t)ck_device_shapes, strlen(ck_device_shapes), "r")};
  return shapes.file ? check_on_device(&o, &shapes, 1) : 6;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--device")) return check_device(argc, argv);
  const char *filter = "";
  bool bench = false, list = false, markdown = false;
  int fills = CK_FILLS;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--bench"))
      bench = true;
    else if (!strcmp(argv[i], "--markdown"))
      markdown = true;
    else if (!strcmp(argv[i], "--list"))
      list = true;
    else if (!strcmp(argv[i], "--expect-failure"))
      expect_failure = true;
    else if (!strcmp(argv[i], "--filter") && i + 1 < argc)
      filter = argv[++i];
    else if (!strcmp(argv[i], "--fills") && i + 1 < argc && (fills = atoi(argv[++i])) > 0 &&
             fills <= CK_FILLS)
      continue;
    else {
      fprintf(stderr, "usage: check_kernels [--bench [--markdown]] [--filter TEXT] [--list] [--fills N] "
                      "[--expect-failure]\n"
                      "       check_kernels " DEVICE_USAGE " [--filter TEXT] [-v]\n");
      return 2;
    }
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct sigaction action = {.sa_handler = on_fault};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  sigaction(SIGILL, &action, NULL);
  int checked = 0, failed = 0, skipped = 0;
  uint64_t comparisons = 0;
  for (const struct hn_kernel *const *p = hn_kernels; *p; p++) {
    const struct hn_kernel *k = *p;
    if (!strstr(k->name, filter) && !strstr(k->family, filter)) continue;
    if (list) {
      printf("%-12s %-12s %-10s %s\n", k->family, k->role, hn_isa_name(k->isa), k->name);
      continue;
    }
    const ck_family *f = find_family(k->family);
    if (!f) {
      printf("FAIL %s: family %s has no adapter in tests/kernels\n", k->name, k->family);
      failed++;
      continue;
    }
    if (!hn_cpu_runs(k->isa)) {
      printf("skip %s: needs %s, this run has %s\n", k->name, hn_isa_name(k->isa),
             hn_isa_name(hn_cpu()->isa));
      skipped++;
      continue;
    }
    state = (ck){.kernel = k,
                 .random = seed_of(k->name),
                 .fills = fills,
                 .on_failure = expect_failure ? on_noticed : NULL};
    ck_case(&state, "start");
    if (bench) {
      if (f->bench) f->bench(&state, k);
    } else {
      f->check(&state, k);
      if (!state.comparisons && !state.lacks) ck_true(&state, false, "the adapter compared nothing");
    }
    ck_release_all(&state);
    if (state.lacks) {
      printf("skip %s: needs %s, this processor has none\n", k->name, state.lacks);
      skipped++;
      continue;
    }
    checked++;
    failed += state.failures > 0;
    comparisons += state.comparisons;
    if (!bench)
      printf("%s %-28s %llu comparisons\n", state.failures ? "FAIL" : "ok  ", k->name,
             (unsigned long long)state.comparisons);
  }
  if (bench) ck_bench_summary(markdown);
  if (!bench && !list)
    printf("%d kernels: %d passed, %d failed, %d skipped; %llu comparisons\n", checked + skipped,
           checked - failed, failed, skipped, (unsigned long long)comparisons);
  return expect_failure ? expected_failure(failed) : failed != 0;
}
