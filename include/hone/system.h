/* What the operating system says about this process and its processors: for long runs and for explaining
 * noise. */
#ifndef HONE_SYSTEM_H
#define HONE_SYSTEM_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NaN: not readable here. Counts are of the whole process since its start. */
typedef struct hone_system_sample {
  double time_s; /* monotonic */
  double rss_bytes;
  double temperature_c; /* of the hottest processor sensor */
  double clock_mhz;     /* mean of the processors, as cpufreq says */
  double
      throttles; /* how often processors were slowed down for their temperature, since the system's start */
  double voluntary_switches, involuntary_switches; /* waited; lost the processor to somebody else */
  double minor_faults, major_faults;               /* pages mapped; pages read from disk */
  double own_seconds, busy_seconds; /* processor time of this process; of everybody on its processors */
  uint32_t processors;              /* those: that this process may use */
} hone_system_sample;

/* Reads a few files of /proc and /sys. From any thread. */
HONE_API void hone_system_read(hone_system_sample *out);
/* Why "temperature", "clock" or "throttles" cannot be read here; "" when it can, or for another word. */
HONE_API const char *hone_system_unread(const hone_system_sample *sample, const char *what);

/* HONE_ERROR_USAGE where the environment's HONE_CPU holds a word that names no instruction set: whatever runs
 * on the processor fails with that. */
HONE_API hone_status hone_system_instructions(hone_error *error);

/* Hardware counters of this process and of the threads that it starts later. */
#define HONE_COUNTS(X)                                                                                       \
  X(cycles)                                                                                                  \
  X(instructions)                                                                                            \
  X(llc_references)                                                                                          \
  X(llc_misses)                                                                                              \
  X(branch_misses)

/* Since the start, scaled where the processor had to take turns; NaN: not counted. */
typedef struct hone_counts {
#define X(name) double name;
  HONE_COUNTS(X)
#undef X
} hone_counts;

typedef struct hone_counting hone_counting;

/* Begins to count. HONE_ERROR_MISSING when this machine lets none of them be read, and why. */
HONE_API hone_status hone_counting_start(hone_counting **out, hone_error *error);
HONE_API void hone_counting_read(const hone_counting *counting, hone_counts *out);
HONE_API void hone_counting_stop(hone_counting *counting); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
