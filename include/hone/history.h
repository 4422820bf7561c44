/* history: measured runs that are kept, and the statistics of a gate that compares new ones with old.
 *
 * A run is the JSON report of `hone bench` (docs/reference/json-schemas.md); the store keeps the whole text
 * and the figures by which runs are listed and plotted. Statistics (hone_gate_*, hone_drift_*) are pure
 * functions. */
#ifndef HONE_HISTORY_H
#define HONE_HISTORY_H

#include <hone/insight.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- records: what a report says ---- */

/* Text of a report by the name of its JSON field; NULL where it says nothing. */
#define HONE_RECORD_TEXTS(X)                                                                                 \
  X(commit) /* revision of what was measured */                                                              \
  X(model)                                                                                                   \
  X(tag) /* the user's word for the run */                                                                   \
  X(machine)                                                                                                 \
  X(device)                                                                                                  \
  X(precision)                                                                                               \
  X(flags)                                                                                                   \
  X(version)             /* of hone */                                                                       \
  X(temperature_c_range) /* "54-58": of the report's [54, 58] */                                             \
  X(profiling_date)      /* ISO 8601, UTC */

/* Numbers of a report; NaN where it says nothing. Milliseconds, MiB, images a second. */
#define HONE_RECORD_NUMBERS(X)                                                                               \
  X(batch)                                                                                                   \
  X(threads)                                                                                                 \
  X(avg_latency_ms)                                                                                          \
  X(median_latency_ms)                                                                                       \
  X(p95_latency_ms)                                                                                          \
  X(cv)                                                                                                      \
  X(throughput_fps)                                                                                          \
  X(h2d_ms_ratio)                                                                                            \
  X(post_ms_ratio)                                                                                           \
  X(memory_peak_mb)

typedef struct hone_record {
  int64_t id; /* in its history, 1...; 0: from elsewhere */
#define X(field) const char *field;
  HONE_RECORD_TEXTS(X)
#undef X
#define X(field) double field;
  HONE_RECORD_NUMBERS(X)
#undef X
  const char *report; /* the whole JSON text; NULL when it was not asked for */
} hone_record;

/* Records in the order in which they were saved, and what owns their texts. */
typedef struct hone_records {
  hone_record *items;
  size_t count;
  void *impl;
} hone_records;

/* Reads one report of `hone bench --json`, or any JSON object with the fields above (a baseline written by
 * hand). HONE_ERROR_INPUT with line and column for text that is no JSON object or lacks a latency. */
HONE_API hone_status hone_record_parse(const char *json, size_t length, hone_records *out, hone_error *error);
HONE_API void hone_records_free(hone_records *records);

/* ---- the store: an SQLite database ---- */

typedef struct hone_history hone_history;

/* HONE_HISTORY, else $XDG_DATA_HOME/hone/history.db, else ~/.local/share/hone/history.db. False when none of
 * them is set or it does not fit. */
HONE_API bool hone_history_default_path(char *buf, size_t size);

/* Opens a history (path NULL: the default one). write: creates what is missing and brings an older schema up
 * to date, after a copy of the file as PATH.v<schema>.bak. Reading changes nothing, and works on an older
 * schema and in a folder that cannot be written. Errors: HONE_ERROR_MISSING (reading, and there is none yet),
 * HONE_ERROR_INPUT (no database, another program's, damaged, or written by a newer hone: left as it is),
 * HONE_ERROR_IO. One thread at a time uses a history; any number of processes share the file. */
HONE_API hone_status hone_history_open(const char *path, bool write, hone_history **out, hone_error *error);
HONE_API void hone_history_close(hone_history *history);
HONE_API const char *hone_history_path(const hone_history *history);

/* Adds one report (tag may be NULL and overrides the report's). When this returns HONE_OK the run is on disk:
 * neither the death of the process nor of the machine loses it. */
HONE_API hone_status hone_history_add(hone_history *history, const char *json, size_t length, const char *tag,
                                      int64_t *id, hone_error *error);

typedef struct hone_history_query {
  int64_t id;         /* 0: any */
  const char *model;  /* glob over the path or its last part; NULL: any */
  const char *commit; /* the beginning of it; NULL: any */
  const char *tag;    /* NULL: any */
  size_t newest;      /* at most so many, the newest; 0: all */
  bool reports;       /* with the whole texts */
} hone_history_query;

/* query NULL: everything. No match is an empty list. */
HONE_API hone_status hone_history_find(hone_history *history, const hone_history_query *query,
                                       hone_records *out, hone_error *error);
/* Deletes runs by id; *removed counts those that existed. All or none. */
HONE_API hone_status hone_history_remove(hone_history *history, const int64_t *ids, size_t n, size_t *removed,
                                         hone_error *error);

/* One self-contained page without scripts: latency of every model over its runs, with commits, tags and what
 * changed. */
HONE_API hone_status hone_history_html(const hone_records *records, hone_sink sink, void *user,
                                       hone_error *error);

/* ---- the gate: has it become slower? ----
 *
 * The unit is a process: one run of the old and one of the new make a pair, measured one after the other, the
 * order turned round from pair to pair (ABBA), so that drift of the machine hits both alike. What counts is
 * the logarithm of their ratio. Two things are needed to call the new one worse: Wilcoxon's signed-rank test
 * against "not slower", and an estimate (Hodges-Lehmann) beyond half the threshold. "Same" needs the same
 * test against "slower by the threshold" and an estimate below half of it. So a true slowdown of the
 * threshold is caught, no change is not flagged, and what lies between goes to the nearer side.
 *
 * Looks are taken after 12, 16, 20, 24, 30, 38, 48, 60... pairs. The chance of a false "worse" of all looks
 * together is at most 0.5 %, that of a false "same" 2 % (each look spends its share). */

#define HONE_GATE_VERDICTS(X)                                                                                \
  X(SAME, "same")                                                                                            \
  X(BETTER, "better") /* as "same", and faster beyond doubt by more than half the threshold */               \
  X(WORSE, "worse")                                                                                          \
  X(NONE, "no verdict")

typedef enum hone_gate_verdict {
#define X(id, word) HONE_GATE_##id,
  HONE_GATE_VERDICTS(X)
#undef X
} hone_gate_verdict;

/* Its word above. Static storage. */
HONE_API const char *hone_gate_verdict_name(hone_gate_verdict verdict);

typedef struct hone_gate_options {
  double threshold;   /* slowdown that matters; 0: 0.05 */
  uint32_t max_pairs; /* the last look; 0: 60; at least 12 */
} hone_gate_options;

typedef struct hone_gate_result {
  hone_gate_verdict verdict;
  bool decided;                     /* more pairs change nothing */
  bool paired;                      /* false: two sets that were not measured side by side */
  uint32_t pairs;                   /* that the verdict stands on; unpaired: the smaller set */
  uint32_t look;                    /* pairs at which to ask again; 0 when decided */
  double baseline_ms, candidate_ms; /* medians */
  double change;                    /* candidate / baseline - 1, by Hodges and Lehmann */
  double low, high;                 /* its interval at 95 % */
  double p_slower;                  /* chance of such data if the new one were not slower */
  double p_threshold;               /* chance of such data if it were slower by the threshold */
  double noise; /* spread of one process, relative (robust): what a quiet machine keeps under 3 % */
  char reason[256];
} hone_gate_result;

/* Judges n pairs, in the order in which they were measured; all times must be above 0. Fewer than the first
 * look decide nothing. The answer depends on the numbers alone. */
HONE_API hone_status hone_gate_pairs(const double *baseline, const double *candidate, uint32_t n,
                                     const hone_gate_options *options, hone_gate_result *out,
                                     hone_error *error);
/* Judges two sets that were not interleaved (runs kept earlier the same day on the same machine, against new
 * ones) by the Mann-Whitney test with the same two conditions. Both need at least 10 processes: less is no
 * verdict. Drift between the two is invisible to any test, so prefer pairs. */
HONE_API hone_status hone_gate_sets(const double *baseline, uint32_t n_baseline, const double *candidate,
                                    uint32_t n_candidate, const hone_gate_options *options,
                                    hone_gate_result *out, hone_error *error);

/* ---- stability: does it stay as it is? ---- */

/* A straight line through values over time: Theil and Sen's slope (median of all slopes between two points),
 * which a few outliers do not move, with Kendall's interval widened by how alike neighbours are. */
typedef struct hone_drift {
  size_t n;                /* finite values; fewer than 8 say nothing: all else is 0 */
  double level;            /* median */
  double slope, low, high; /* per second, with its interval at 95 % */
  double change;           /* slope times the time between first and last value */
  double likeness;         /* autocorrelation of what the line leaves, lag 1, 0 to 0.9 */
  bool certain;            /* the interval does not hold 0 */
} hone_drift;

/* times in seconds, ascending; values that are not finite are left out. At most 2000 are looked at (evenly
 * chosen). False when out of memory. */
HONE_API bool hone_drift_compute(const double *times, const double *values, size_t n, hone_drift *out);

/* What the system did during one run. */
typedef struct hone_disturbance {
  uint32_t involuntary_switches, minor_faults, major_faults;
} hone_disturbance;

/* What explains a slow run: the first of these that was seen of it. */
#define HONE_SLOW_CAUSES(X)                                                                                  \
  X(DISK, "disk")             /* pages were read from disk */                                                \
  X(SWITCHED, "switched")     /* the system gave the processor to somebody else */                           \
  X(CLOCK, "clock")           /* the processors were slowed down, or slower than usual */                    \
  X(MAPPED, "mapped")         /* many pages were mapped */                                                   \
  X(NEIGHBOURS, "neighbours") /* others took much of the processors around it */                             \
  X(UNSEEN, "unseen")         /* nothing of all that */

typedef enum hone_slow_cause {
#define X(id, word) HONE_SLOW_##id,
  HONE_SLOW_CAUSES(X)
#undef X
} hone_slow_cause;

/* Its word above, static; the first of the causes that the run's figures show. */
HONE_API const char *hone_slow_cause_name(hone_slow_cause cause);
HONE_API hone_slow_cause hone_slow_run_cause(const hone_slow_run *run);

/* Runs that took more than 1.5 times the median, and what they have in common. Writes one line into buf: ""
 * when there is none and the CV is at most 0.15. seen may be NULL. */
HONE_API void hone_spread_explain(const double *ms, const hone_disturbance *seen, size_t n, double median,
                                  double cv, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
