#include "base/sensors.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double read_number(const char *path) {
  char text[64] = "", *end = text;
  FILE *f = fopen(path, "re");
  if (!f) return NAN;
  double v = fgets(text, sizeof text, f) ? strtod(text, &end) : NAN;
  fclose(f);
  return end == text ? (double)NAN : v;
}

/* Whether the first line of the file that lies beside `path` under this name holds one of the words. */
static bool says(const char *path, const char *name, const char *const *words) {
  char file[512], text[80] = "";
  const char *slash = strrchr(path, '/');
  int n = snprintf(file, sizeof file, "%.*s/%s", slash ? (int)(slash - path) : 0, path, name);
  FILE *f = n > 0 && (size_t)n < sizeof file ? fopen(file, "re") : NULL;
  if (!f) return false;
  bool read = fgets(text, sizeof text, f) != NULL;
  fclose(f);
  for (; read && *words; words++)
    if (strstr(text, *words)) return true;
  return false;
}

typedef double (*merge)(double a, double b);
static double sum(double a, double b) { return a + b; }

/* Files merged; those beside which `name` says none of the words are left out. */
typedef struct gathering {
  const char *name, *const *words;
  merge merge;
  double all, count;
} gathering;

static void take(gathering *g, const char *path) {
  const double v = !g->name || says(path, g->name, g->words) ? read_number(path) : (double)NAN;
  if (!isfinite(v)) return;
  g->all = g->count > 0 ? g->merge(g->all, v) : v;
  g->count++;
}

/* All files below path that the pattern names, "/class/hwmon*". glob would do, but glibc's frees twice where
 * memory ends (2.36). */
static void walk(gathering *g, const char *path, const char *pattern) {
  char part[64], next[512];
  if (!*pattern) {
    take(g, path);
    return;
  }
  const char *rest = pattern + 1 + strcspn(pattern + 1, "/");
  snprintf(part, sizeof part, "%.*s", (int)(rest - pattern - 1), pattern + 1);
  if (!strpbrk(part, "*[")) {
    const int n = snprintf(next, sizeof next, "%s/%s", path, part);
    if (n > 0 && (size_t)n < sizeof next) walk(g, next, rest);
    return;
  }
  DIR *d = opendir(path);
  for (const struct dirent *e; d && (e = readdir(d));) {
    const int n = snprintf(next, sizeof next, "%s/%s", path, e->d_name);
    if (n > 0 && (size_t)n < sizeof next && fnmatch(part, e->d_name, FNM_PERIOD) == 0) walk(g, next, rest);
  }
  if (d) closedir(d);
}

static double gather(const char *root, const char *pattern, const char *name, const char *const *words,
                     merge merge, double *count) {
  gathering g = {name, words, merge, NAN, 0};
  walk(&g, root, pattern);
  *count = g.count;
  return g.all;
}

double hn_sensor_temperature(const char *root) {
  static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", NULL},
                           *const zones[] = {"x86_pkg_temp", "cpu", "CPU", "soc", NULL};
  double count, v = gather(root, "/sys/class/hwmon/hwmon*/temp*_input", "name", chips, fmax, &count);
  if (!count) v = gather(root, "/sys/class/thermal/thermal_zone*/temp", "type", zones, fmax, &count);
  return v / 1000;
}

double hn_sensor_clock(const char *root) {
  double count,
      v = gather(root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq", NULL, NULL, sum, &count);
  return v / count / 1000;
}

double hn_sensor_throttles(const char *root) {
  double count;
  return gather(root, "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count", NULL, NULL,
                sum, &count);
}

double hn_perf_decode(const void *bytes, size_t size) {
  uint64_t word[3];
  if (size != sizeof word) return NAN;
  memcpy(word, bytes, sizeof word);
  if (!word[2] || word[2] > word[1]) return NAN;
  return (double)word[0] * ((double)word[1] / (double)word[2]);
}
