/* The process and its processors, as the system sees them. */
#include <hone/system.h>

#include "backends/cpu/backend.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/sensors.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void hone_system_read(hone_system_sample *out) {
  if (!out) return;
  struct rusage u;
  bool known = getrusage(RUSAGE_SELF, &u) == 0;
  double busy = hn_cpu_busy_seconds(), rss = (double)hn_rss_bytes();
  *out = (hone_system_sample){.time_s = (double)hn_now_ns() * 1e-9,
                              .rss_bytes = rss > 0 ? rss : (double)NAN,
                              .temperature_c = hn_sensor_temperature(""),
                              .clock_mhz = hn_sensor_clock(""),
                              .throttles = hn_sensor_throttles(""),
                              .voluntary_switches = known ? (double)u.ru_nvcsw : (double)NAN,
                              .involuntary_switches = known ? (double)u.ru_nivcsw : (double)NAN,
                              .minor_faults = known ? (double)u.ru_minflt : (double)NAN,
                              .major_faults = known ? (double)u.ru_majflt : (double)NAN,
                              .own_seconds = hn_cpu_own_seconds(),
                              .busy_seconds = busy >= 0 ? busy : (double)NAN,
                              .processors = hn_cpu_count()};
}

hone_status hone_system_instructions(hone_error *error) { return hn_cpu_held(error); }

const char *hone_system_unread(const hone_system_sample *s, const char *what) {
  if (!what) return "";
  if (strcmp(what, "temperature") == 0 && isnan(s->temperature_c))
    return "the system shows no temperature sensor of a processor";
  if (strcmp(what, "clock") == 0 && isnan(s->clock_mhz))
    return "the system has no cpufreq: the clock cannot be read";
  if (strcmp(what, "throttles") == 0 && isnan(s->throttles))
    return "the system does not count thermal slow-downs";
  return "";
}

/* ---- hardware counters, one file descriptor each: kernels refuse groups that follow new threads */

static const struct {
  const char *name;
  uint64_t config;
} events[] = {{"cycles", PERF_COUNT_HW_CPU_CYCLES},
              {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
              {"llc_references", PERF_COUNT_HW_CACHE_REFERENCES},
              {"llc_misses", PERF_COUNT_HW_CACHE_MISSES},
              {"branch_misses", PERF_COUNT_HW_BRANCH_MISSES}};
enum { EVENTS = sizeof events / sizeof *events };

struct hone_counting {
  int fd[EVENTS];
  bool imitated;
};

/* For tests on machines without counters: in fixed proportion to the process's time. */
static hone_counts imitation(void) {
  const double ns = 1e9 * hn_cpu_own_seconds();
  return (hone_counts){.cycles = 3 * ns,
                       .instructions = 6 * ns,
                       .llc_references = ns / 10,
                       .llc_misses = ns / 50,
                       .branch_misses = ns / 1000};
}

static const char *explain(int e) {
  switch (e) {
  case ENOENT:
  case EOPNOTSUPP:
  case ENODEV: return "this machine offers no hardware counters (a virtual machine mostly hides them)";
  case EACCES:
  case EPERM: return "not allowed: /proc/sys/kernel/perf_event_paranoid or the container forbids it";
  case ENOSYS: return "this kernel has no perf_event";
  default: return strerror(e);
  }
}

hone_status hone_counting_start(hone_counting **out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_counting_start: out may not be NULL");
  int opened = 0, why = 0;
  *out = NULL;
  hone_counting *c = hn_calloc(1, sizeof *c);
  if (!c) return hn_fail_memory(error, sizeof *c, "counters");
  c->imitated = HN_FAULT("imitated_counters");
  for (int i = 0; i < EVENTS; i++) c->fd[i] = -1;
  for (int i = 0; i < EVENTS && !c->imitated; i++) {
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE,
                                .size = sizeof a,
                                .config = events[i].config,
                                .inherit = 1,
                                .exclude_kernel = 1,
                                .exclude_hv = 1,
                                .read_format =
                                    PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
    c->fd[i] = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (c->fd[i] < 0 && !why) why = errno;
    opened += c->fd[i] >= 0;
  }
  if (opened || c->imitated) {
    *out = c;
    return HONE_OK;
  }
  hn_free(c);
  return hn_fail(error, HONE_ERROR_MISSING, "%s", explain(why));
}

void hone_counting_read(const hone_counting *c, hone_counts *out) {
  if (!c || !out) return;
  double v[EVENTS];
  if (c->imitated) {
    *out = imitation();
    return;
  }
  for (int i = 0; i < EVENTS; i++) {
    uint64_t word[3];
    ssize_t n = c->fd[i] >= 0 ? read(c->fd[i], word, sizeof word) : -1;
    v[i] = n > 0 ? hn_perf_decode(word, (size_t)n) : (double)NAN;
  }
  *out = (hone_counts){v[0], v[1], v[2], v[3], v[4]};
}

void hone_counting_stop(hone_counting *c) {
  for (int i = 0; c && i < EVENTS; i++)
    if (c->fd[i] >= 0) close(c->fd[i]);
  hn_free(c);
}
