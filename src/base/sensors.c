#include "base/sensors.h"

#include <glob.h>
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

/* All files of a pattern merged; those beside which `name` says none of the words are left out. */
static double gather(const char *root, const char *pattern, const char *name, const char *const *words,
                     merge merge, double *count) {
  char full[512];
  glob_t found;
  double all = NAN;
  *count = 0;
  int n = snprintf(full, sizeof full, "%s%s", root, pattern);
  if (n < 0 || (size_t)n >= sizeof full || glob(full, 0, NULL, &found) != 0) return NAN;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    double v = !name || says(found.gl_pathv[i], name, words) ? read_number(found.gl_pathv[i]) : (double)NAN;
    if (!isfinite(v)) continue;
    all = *count ? merge(all, v) : v;
    ++*count;
  }
  globfree(&found);
  return all;
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
