/* Drift, what slow runs have in common, sensors from a made file system, and counters from recorded reads. */
#include "history/noise.h"

#include <hone/hone.h>

#include "temporary.h"
#include "base/mem.h"
#include "base/sensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 120 };

/* A line with independent or alike noise; every tenth value is an outlier when asked for. */
static void make(double *t, double *v, double slope, double noise, double alike, bool outliers) {
  double x = normal();
  for (int i = 0; i < N; i++, x = alike * x + sqrt(1 - alike * alike) * normal()) {
    t[i] = 5 * i;
    v[i] = 100 + slope * t[i] + noise * x + (outliers && i % 10 == 3 ? 50 : 0);
  }
}

static void test_drift(void **unused) {
  (void)unused;
  double t[N], v[N];
  hone_drift d;
  make(t, v, 0.02, 0, 0, false);
  assert_true(hone_drift_compute(t, v, N, &d));
  assert_true(fabs(d.slope - 0.02) < 1e-12 && fabs(d.change - 0.02 * 595) < 1e-9 && d.certain && d.n == N);
  make(t, v, 0.02, 1, 0, true); /* outliers do not turn the line */
  assert_true(hone_drift_compute(t, v, N, &d));
  assert_true(d.certain && fabs(d.slope - 0.02) < 0.003 && d.low < 0.02 && d.high > 0.02);
  v[5] = NAN;
  assert_true(hone_drift_compute(t, v, N, &d));
  assert_int_equal(d.n, N - 1);
  for (int i = 0; i < N; i++) v[i] = 3;
  assert_true(hone_drift_compute(t, v, N, &d));
  assert_true(d.slope == 0 && !d.certain && d.level == 3);
  assert_true(hone_drift_compute(t, v, 7, &d));
  assert_true(d.n == 0 && !d.certain);
  for (int i = 0; i < N; i++) v[i] = NAN;
  assert_true(hone_drift_compute(t, v, N, &d));
  assert_int_equal(d.n, 0);
  hn_mem_fail_after(1);
  make(t, v, 0, 1, 0, false);
  assert_false(hone_drift_compute(t, v, N, &d));
  hn_mem_fail_after(0);
}

/* The interval at 95 % holds the truth about as often as it says, also when neighbours are alike. */
static void test_drift_coverage(void **unused) {
  (void)unused;
  double t[N], v[N];
  const double alike[] = {0, 0.5};
  for (int k = 0; k < 2; k++) {
    int outside = 0, wrongly_certain = 0;
    for (int i = 0; i < 300; i++) {
      hone_drift d;
      make(t, v, 0.01, 1, alike[k], false);
      assert_true(hone_drift_compute(t, v, N, &d));
      outside += d.low > 0.01 || d.high < 0.01;
      make(t, v, 0, 1, alike[k], false);
      assert_true(hone_drift_compute(t, v, N, &d));
      wrongly_certain += d.certain;
    }
    assert_in_range(outside, 0, 36); /* 15 expected */
    assert_in_range(wrongly_certain, 0, 36);
  }
}

static void test_spread(void **unused) {
  (void)unused;
  double ms[20];
  hone_disturbance seen[20] = {{0}};
  char line[400];
  for (int i = 0; i < 20; i++) ms[i] = 10;
  hone_spread_explain(ms, seen, 20, 10, 0.01, line, sizeof line);
  assert_string_equal(line, "");
  hone_spread_explain(ms, seen, 20, 10, 0.2, line, sizeof line);
  assert_non_null(strstr(line, "no run stands out"));
  ms[1] = ms[2] = ms[3] = ms[4] = 30;
  seen[1].involuntary_switches = 2;
  seen[2].involuntary_switches = 1, seen[2].major_faults = 1;
  seen[3].major_faults = 4;
  seen[7].involuntary_switches = 1;
  hone_spread_explain(ms, seen, 20, 10, 0.5, line, sizeof line);
  assert_non_null(strstr(line, "4 of 20 runs took more than 1.5 times the median (28.6 % of the time)"));
  assert_non_null(strstr(line, "in 2 of them the system gave the processor to somebody else (in 1 of the 16 "
                               "others), in 1 pages were read "
                               "from disk, in 1 no such cause"));
  assert_null(strstr(line, "mapped")); /* what was not seen is not listed */
  hone_spread_explain(ms, NULL, 20, 10, 0.5, line, sizeof line);
  assert_null(strstr(line, "processor"));
}

static void test_slow_cause(void **unused) {
  (void)unused;
  hone_slow_run r = {.wall_ms = 30, .usual_ms = 10, .throttles = NAN};
  r.clock_mhz = r.usual_clock_mhz = r.others_pct = NAN;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_UNSEEN); /* what is not known explains nothing */
  r.others_pct = 60;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_NEIGHBOURS);
  r.minor_faults = 5000;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_MAPPED);
  r.clock_mhz = 2600, r.usual_clock_mhz = 2700;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_MAPPED);
  r.clock_mhz = 1300;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_CLOCK);
  r.involuntary_switches = 1;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_SWITCHED);
  r.major_faults = 1;
  assert_int_equal(hone_slow_run_cause(&r), HONE_SLOW_DISK);
}

static char root[128];

static void put(const char *name, const char *text) {
  char command[512];
  snprintf(command, sizeof command, "mkdir -p $(dirname '%s%s') && printf '%s\\n' >'%s%s'", root, name, text,
           root, name);
  assert_int_equal(system(command), 0);
}

static void test_sensors(void **unused) {
  (void)unused;
  assert_non_null(mkdtemp(temporary(root, sizeof root, "hone-sensors")));
  assert_true(isnan(hn_sensor_temperature(root)) && isnan(hn_sensor_clock(root)) &&
              isnan(hn_sensor_throttles(root)));
  put("/sys/class/thermal/thermal_zone0/type", "acpitz");
  put("/sys/class/thermal/thermal_zone0/temp", "90000"); /* the board's, not the processor's */
  assert_true(isnan(hn_sensor_temperature(root)));
  put("/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp");
  put("/sys/class/thermal/thermal_zone1/temp", "54000");
  assert_true(hn_sensor_temperature(root) == 54);
  put("/sys/class/hwmon/hwmon3/name", "nvme");
  put("/sys/class/hwmon/hwmon3/temp1_input", "80000");
  assert_true(hn_sensor_temperature(root) == 54);
  put("/sys/class/hwmon/hwmon4/name", "k10temp");
  put("/sys/class/hwmon/hwmon4/temp1_input", "58500");
  put("/sys/class/hwmon/hwmon4/temp2_input", "61250");
  put("/sys/class/hwmon/hwmon4/temp3_input", "nonsense");
  assert_true(hn_sensor_temperature(root) == 61.25);
  put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000");
  put("/sys/devices/system/cpu/cpu11/cpufreq/scaling_cur_freq", "3000000");
  put("/sys/devices/system/cpu/cpuidle/cpufreq/scaling_cur_freq", "9000000");
  assert_true(hn_sensor_clock(root) == 2500);
  put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
  put("/sys/devices/system/cpu/cpu11/thermal_throttle/core_throttle_count", "4");
  assert_true(hn_sensor_throttles(root) == 7);
  assert_int_equal(temporary_remove(root), 0);
}

static void test_perf_reads(void **unused) {
  (void)unused;
  FILE *f = fopen("tests/history/perf_reads.txt", "r");
  char line[300], name[40];
  int n = 0;
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    unsigned long long word[3];
    double want;
    if (line[0] == '#' ||
        sscanf(line, "%39s %llu %llu %llu %lf", name, &word[0], &word[1], &word[2], &want) != 5)
      continue;
    uint64_t bytes[3] = {word[0], word[1], word[2]};
    double got = hn_perf_decode(bytes, sizeof bytes);
    if (isnan(want) ? !isnan(got) : got != want) fail_msg("%s: %g, not %g", name, got, want);
    assert_true(isnan(hn_perf_decode(bytes, 16))); /* a read cut short */
    n++;
  }
  fclose(f);
  assert_int_equal(n, 6);
}

/* This machine: either there are counters that count, or one reason why not. */
static void test_here(void **unused) {
  (void)unused;
  hone_system_sample a, b;
  hone_counting *c;
  hone_error e = {0};
  hone_system_read(&a);
  hone_system_read(&b);
  assert_true(b.time_s >= a.time_s && b.minor_faults >= a.minor_faults && a.rss_bytes > 0 &&
              b.own_seconds >= a.own_seconds);
  assert_true(isnan(a.temperature_c) == (hone_system_unread(&a, "temperature")[0] != 0));
  assert_true(isnan(a.clock_mhz) == (hone_system_unread(&a, "clock")[0] != 0));
  if (hone_counting_start(&c, &e) == HONE_OK) {
    hone_counts before, after;
    hone_counting_read(c, &before);
    for (volatile int i = 0; i < 1000000; i++) {
    }
    hone_counting_read(c, &after);
    assert_true(isnan(after.instructions) || after.instructions - before.instructions > 1e6);
    hone_counting_stop(c);
  } else {
    assert_int_equal(e.status, HONE_ERROR_MISSING);
    assert_true(e.what[0]);
  }
}

int main(void) {
  noise.state = 11;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_drift),   cmocka_unit_test(test_drift_coverage),
                                     cmocka_unit_test(test_spread),  cmocka_unit_test(test_slow_cause),
                                     cmocka_unit_test(test_sensors), cmocka_unit_test(test_perf_reads),
                                     cmocka_unit_test(test_here)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
