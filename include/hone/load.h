/* Load scenarios: how a model serves the load of MLPerf Inference, by the rules of its load generator LoadGen
 * (https://github.com/mlcommons/inference/tree/master/loadgen).
 *
 * A query is one or more samples (inputs). What is asked of a plan, which sample when, follows from the
 * seeds alone and is LoadGen's schedule for the same seeds. A result is VALID when the run was long enough,
 * had enough queries, met the bound, and early stopping (is the percentile what it seems, with 99 %
 * confidence, after so few queries?) is content. */
#ifndef HONE_LOAD_H
#define HONE_LOAD_H

#include <hone/measure.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_scenario {
  HONE_SCENARIO_SINGLE = 0, /* one sample, the next when it is done: latency */
  HONE_SCENARIO_MULTI,      /* several samples, the next ones when all are done: latency of all */
  HONE_SCENARIO_SERVER,  /* samples come when they come (a Poisson process): rate within a bound of latency */
  HONE_SCENARIO_OFFLINE, /* all samples are there at once: throughput */
  HONE_SCENARIO_CLOSED   /* every context takes a sample when it is done with one. Not of MLPerf: curves */
} hone_scenario;

/* Word of a scenario ("single"), NULL for none. */
HONE_API const char *hone_scenario_name(hone_scenario scenario);

typedef struct hone_load_settings {
  hone_scenario scenario;
  double percentile;                     /* of the latencies, that is judged; 0.5 to 0.9999 */
  uint64_t min_duration_ns, min_queries; /* both must be reached. Offline: min_queries samples at least */
  uint64_t max_duration_ns;              /* no query begins later; 0: no limit */
  uint32_t query_samples;                /* multi: of a query */
  uint32_t samples;                      /* different ones that there are */
  double qps;        /* server: queries a second; offline: samples a second that are expected */
  uint64_t bound_ns; /* server: latency at the percentile */
  uint64_t set_seed, sample_seed, schedule_seed; /* LoadGen's qsl, sample_index and schedule_rng_seed */
  bool give_up;                                  /* server: end as soon as the bound cannot be met any more */
} hone_load_settings;

/* LoadGen's own: 90th percentile for a single stream, else the 99th; 10 s; 100 queries; 8 samples a query;
 * and MLPerf's (mlperf.conf): 662 queries of the multi stream, 15 ms, the seeds. samples and qps are 1. */
HONE_API void hone_load_defaults(hone_scenario scenario, hone_load_settings *out);

/* What is asked to serve. All is borrowed. */
typedef struct hone_load_target {
  hone_plan *plan;
  uint32_t in_flight; /* contexts of the plan, each with a thread that runs it */
  /* Samples that one run can take. 1: a sample is all inputs of a run. More: a sample is one row of each
   * (dimension 0 of every input is so long); a run takes what waits, and repeats the last row to be full. */
  uint32_t rows;
  const hone_tensor *const *in; /* sample s, input i: in[s * inputs of the plan + i] */
  uint32_t threads; /* that the contexts divide among themselves (hone_context_set_threads); 0: they share the
                       engine's */
} hone_load_target;

#define HONE_LOAD_PERCENTILES(X) X(50) X(90) X(95) X(97) X(99)

typedef struct hone_load_result {
  hone_load_settings settings;
  uint32_t in_flight, rows;
  uint32_t threads; /* that each context had to itself; 0: all shared the engine's */
  bool valid;
  bool long_enough, enough_queries, fast_enough, sure; /* duration, count, bound, early stopping */
  bool interrupted, gave_up;
  char why[480];             /* what makes it invalid; "" for valid */
  uint64_t queries, samples; /* that were answered */
  uint64_t over;             /* server: later than the bound */
  double seconds;            /* from the start to the last answer */
  /* Samples a second, as LoadGen counts them: single: of the mean latency; server: all but the first until
   * the last query was answered; else: until all were answered. */
  double rate;
  double scheduled_rate;          /* server: as drawn, all but the first until the last; else NaN */
  double min_ms, mean_ms, max_ms; /* latency: server: since the arrival was due; multi: of queries */
  double p50_ms, p90_ms, p95_ms, p97_ms, p99_ms;
  double percentile_ms;          /* at settings.percentile */
  double early_ms, early_99_ms;  /* early stopping's estimate of it; of the 99th (single); NaN: too few */
  uint64_t early_queries;        /* server: that early stopping needs, if no more are late; else: at least */
  double busy;                   /* share of the time that a context ran, mean of all */
  double run_p50_ms, run_p99_ms; /* of the runs alone */
  double wait_ms, over_wait_ms,
      over_ms; /* server: means: waiting for a context; of the late ones: that, and all */
} hone_load_result;

/* One test. Contexts are made, warmed up by one run each and ended here. A watch that stops ends it with what
 * was answered (interrupted, HONE_OK). */
HONE_API hone_status hone_load_run(const hone_load_target *target, const hone_load_settings *settings,
                                   const hone_watch *watch, hone_load_result *out, hone_error *error);

/* ---------------------------------------------------------------- the highest rate */

typedef enum hone_load_limit {
  HONE_LIMIT_NONE = 0, /* no rate was tried that is too much */
  HONE_LIMIT_RUNS,     /* the runs themselves are longer than the bound */
  HONE_LIMIT_TAIL,     /* late queries lost more by slow runs than by waiting */
  HONE_LIMIT_CAPACITY, /* every context is busy: no more can be served */
  HONE_LIMIT_BURSTS,   /* contexts are free at times, but arrivals come in bursts, and then wait */
  HONE_LIMIT_COUNT     /* too few queries or too short a test for a verdict */
} hone_load_limit;

#define HONE_LOAD_TRIALS 40

typedef struct hone_load_peak {
  uint32_t n; /* trials, in the order that they were made */
  hone_load_result *trial;
  int32_t best, too_much; /* the highest valid one, the lowest invalid one above it; -1: none */
  hone_load_limit limit;  /* of too_much */
  char text[400];         /* the same for people */
  bool interrupted;
} hone_load_peak;

/* The highest rate in the server scenario that is valid, to 1 part in `steps` (0: 32): from settings->qps (0:
 * half of what the contexts reach back to back) it halves or doubles until one rate is valid and one is not,
 * then halves between them. Free with hone_load_peak_free. */
HONE_API hone_status hone_load_peak_find(const hone_load_target *target, const hone_load_settings *settings,
                                         uint32_t steps, const hone_watch *watch, hone_load_peak *out,
                                         hone_error *error);
HONE_API void hone_load_peak_free(hone_load_peak *peak);

/* ---------------------------------------------------------------- concurrency */

/* Latency against throughput with 1 to target->in_flight contexts, each busy all the time, for settings'
 * duration and count of queries each. points[in_flight]; *n: how many there are, fewer when interrupted. */
HONE_API hone_status hone_load_curve(const hone_load_target *target, const hone_load_settings *settings,
                                     const hone_watch *watch, hone_load_result *points, uint32_t *n,
                                     hone_error *error);
/* The first point that no later one beats by more than a twentieth of its throughput; n > 0. */
HONE_API uint32_t hone_load_knee(const hone_load_result *points, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
