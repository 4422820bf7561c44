/* Options of load scenarios. */
#ifndef HONE_CLI_LOAD_H
#define HONE_CLI_LOAD_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* What is asked for. */
typedef struct cli_load {
  hone_load_settings settings;
  bool search; /* the highest rate */
  bool curve;
  uint32_t in_flight; /* of the curve: the most */
  bool streams;       /* threads are divided among them */
} cli_load;

/* Whether a scenario or a curve is asked for. */
bool cli_load_asked(const cli_args *args);
/* HONE_ERROR_USAGE for options that mean nothing together. settings.samples 0: as many as fit. */
hone_status cli_load_read(const cli_args *args, cli_load *out, hone_error *error);

#define CLI_OPT_LOAD                                                                                          \
  {0,                                                                                                         \
   "scenario",                                                                                                \
   CLI_TEXT,                                                                                                  \
   CLI_FIELD(scenario),                                                                                       \
   "single|multi|server|offline",                                                                             \
   "serve the load of MLPerf's scenario, by LoadGen's rules"},                                                \
      {0,        "latency-bound",                                                                             \
       CLI_TEXT, CLI_FIELD(latency_bound),                                                                    \
       "TIME",   "server: bound of the percentile, such as 15ms; without --qps the highest rate within it"},  \
      {0, "qps", CLI_NUMBER, CLI_FIELD(qps), "X", "server: queries a second; offline: what is expected"},     \
      {0, "percentile", CLI_NUMBER, CLI_FIELD(percentile), "P", "that is judged (single: 90, else 99)"},      \
      {0,        "min-duration",                                                                              \
       CLI_TEXT, CLI_FIELD(min_duration),                                                                     \
       "TIME",   "of a test, such as 10m or 200ms (10s; a curve's points: 1s)"},                              \
      {0,        "min-queries",                                                                               \
       CLI_SOME, CLI_FIELD(min_queries),                                                                      \
       "N",      "of a test; offline: samples (100; multi: 662)"},                                            \
      {0, "in-flight", CLI_SOME, CLI_FIELD(in_flight), "N", "runs at the same time (1)"},                     \
      {0,        "streams",                                                                                   \
       CLI_SOME, CLI_FIELD(streams),                                                                          \
       "N",      "as --in-flight, each run with its part of the threads; alone: of --scenario offline"},      \
      {0, "curve", CLI_SOME, CLI_FIELD(curve), "N", "latency against throughput with 1 to N runs in flight"}, \
      {0,        "samples",                                                                                   \
       CLI_SOME, CLI_FIELD(samples),                                                                          \
       "N",      "different inputs (what fits into 64 MiB, at most 1024; 1 with --input)"},                   \
      {0, "query-samples", CLI_SOME, CLI_FIELD(query_samples), "N", "multi: samples of a query (8)"}, {       \
    0, "load-seeds", CLI_TEXT, CLI_FIELD(load_seeds), "A,B,C",                                                \
        "LoadGen's seeds: qsl, sample_index, schedule (MLPerf's)"                                             \
  }

#endif
