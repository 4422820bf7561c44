/* history: measured runs that are kept, and the statistics of a gate that compares new ones with old.
 *
 * A run is the JSON report of `hone bench` (docs/json-schemas.md); the store keeps the whole text and the
 * figures by which runs are listed and plotted. Statistics (hone_gate_*, hone_drift_*) are pure functions. */
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
  X(temperature_c_range) /* "54-58" */                                                                       \
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

#ifdef __cplusplus
}
#endif
#endif
