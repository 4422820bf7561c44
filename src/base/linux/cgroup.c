#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A limit of one group: its folder to the value, 0 where there is none. */
typedef double (*limit)(const char *folder);

/* The two numbers of a file; false: it is not there, or does not begin with a number ("max"). */
static bool numbers(const char *folder, const char *name, double *a, double *b) {
  char path[12600];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
  FILE *f = fopen(path, "re");
  const int n = f ? fscanf(f, "%lf %lf", a, b) : 0;
  if (f) fclose(f);
  return n >= 1;
}

/* "QUOTA PERIOD" in microseconds; version 1 has them in two files, -1 for none. */
static double processors2(const char *folder) {
  double quota = 0, period = 0;
  return numbers(folder, "cpu.max", &quota, &period) && quota > 0 && period > 0 ? quota / period : 0;
}

static double processors1(const char *folder) {
  double quota = 0, period = 0, none;
  return numbers(folder, "cpu.cfs_quota_us", &quota, &none) &&
                 numbers(folder, "cpu.cfs_period_us", &period, &none) && quota > 0 && period > 0
             ? quota / period
             : 0;
}

static double memory2(const char *folder) {
  double bytes = 0, none;
  return numbers(folder, "memory.max", &bytes, &none) && bytes > 0 ? bytes : 0;
}

/* Version 1 writes the most whole pages that a signed number holds where there is no limit. */
static double memory1(const char *folder) {
  double bytes = 0, none;
  return numbers(folder, "memory.limit_in_bytes", &bytes, &none) && bytes > 0 && bytes < 0x1p62 ? bytes : 0;
}

static double lesser(double a, double b) { return a > 0 && (b == 0 || a < b) ? a : b; }

/* The least limit from the group `path` ("/a/b", from what the mount shows) up to the mount itself. Inside of
 * a container the mount may begin at the process's own group, whose path from outside is not found there: the
 * mount's own limit is then the group's. */
static double least(const char *mount, const char *path, limit of) {
  char folder[12500];
  double found = 0;
  const int n = snprintf(folder, sizeof folder, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
  if (n >= (int)sizeof folder) return of(mount);
  char *below = folder + strlen(mount);
  for (;;) {
    found = lesser(of(folder), found);
    if (!*below) return found;
    char *slash = strrchr(below, '/');
    *(slash ? slash : below) = 0;
  }
}

static bool lists(const char *controllers, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = controllers; *p; p += strcspn(p, ","), p += *p == ',')
    if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  return false;
}

/* Lines of /proc/self/cgroup are HIERARCHY:CONTROLLERS:PATH; version 2's is 0 and names no controller. */
static double of_process(const char *root, const char *controller, limit two, limit one) {
  char path[4200], line[4096], mount[8300];
  double found = 0;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group) continue;
    *names++ = 0, *group++ = 0;
    if (!*names) {
      snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
      found = lesser(least(mount, group, two), found);
    } else if (lists(names, controller)) {
      snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, names);
      found = lesser(least(mount, group, one), found);
      if (strcmp(names, controller) == 0) continue;
      snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root,
               controller); /* a link to it, or mounted alone */
      found = lesser(least(mount, group, one), found);
    }
  }
  if (f) fclose(f);
  return found;
}

double hn_cgroup_processors(const char *root) { return of_process(root, "cpu", processors2, processors1); }
uint64_t hn_cgroup_memory(const char *root) { return (uint64_t)of_process(root, "memory", memory2, memory1); }
