/* Measuring as the commands do: whether the machine is quiet, records of runs, long runs, the gate's
 * processes, and the whole loop (hone loop). It prints nothing and stands on the functions of the other
 * headers. Times are in milliseconds where a name ends in _ms, else in seconds. */
#ifndef HONE_MEASURE_H
#define HONE_MEASURE_H

#include <hone/compare.h>
#include <hone/dataset.h>
#include <hone/eval.h>
#include <hone/history.h>
#include <hone/improve.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who watches long work; NULL, also for each of the two: nobody does. */
typedef struct hone_watch {
  /* How far `what` (static) is: done of total, total 0: nobody knows how much is to come. False: stop, with
   * HONE_ERROR_CANCELLED. */
  bool (*progress)(void *arg, const char *what, uint32_t done, uint32_t total);
  /* This context is run from now on, so that hone_context_cancel can end the run; NULL: none. False: do not
   * run it, HONE_ERROR_CANCELLED. */
  bool (*running)(void *arg, hone_context *context);
  void *arg;
} hone_watch;

/* ---------------------------------------------------------------- quiet
 *
 * Other processes come and go; figures that are taken beside them say less. */
typedef struct hone_quiet {
  bool known;     /* the system tells what others do */
  bool quiet;     /* they took at most HONE_ROOFS_QUIET of the processors, for a second */
  double others;  /* share of the processors that they took in the last half second, 0 to 1; NaN: not known */
  double seconds; /* that it took */
} hone_quiet;

/* Waits until others leave the processors alone, at most so many seconds; that they do not is no error. */
HONE_API hone_status hone_quiet_wait(double max_seconds, const hone_watch *watch, hone_quiet *out,
                                     hone_error *error);

/* ---------------------------------------------------------------- peaks
 *
 * The machine's roofs as one process knows them, zeroed before its first use: records that are made with one
 * of these speak of the same roofs, also where a busy machine's were not cached. */
typedef struct hone_peaks {
  hone_roofs cpu;
  uint32_t threads; /* that `cpu` was asked for */
  hone_device_roofs device;
  char name[64]; /* of the device */
  bool again;    /* they were measured once more, because a run was faster */
} hone_peaks;

/* Measures the roofs of "cpu" (NULL) or an accelerator, unless *peaks has them, or a cache (again: in any
 * case). max_seconds 0: as long as it usually takes; at least 1. */
HONE_API hone_status hone_peaks_find(hone_peaks *peaks, const char *device, uint32_t threads, bool again,
                                     double max_seconds, const hone_watch *watch, hone_error *error);
/* The same into a record of runs; what cannot be measured is noted there. */
HONE_API hone_status hone_peaks_add(hone_peaks *peaks, const char *device, uint32_t threads,
                                    double max_seconds, const hone_watch *watch, hone_facts *facts,
                                    hone_error *error);
/* A layer of the record was faster than a roof (profile->beaten): measures the roofs again, once with these
 * peaks, and takes what the layer reached where that is no more than a little above. *raised: the record has
 * other roofs now, and wants a new profile. */
HONE_API hone_status hone_peaks_raise(hone_peaks *peaks, const hone_profile *profile, const char *device,
                                      double max_seconds, const hone_watch *watch, hone_facts *facts,
                                      bool *raised, hone_error *error);

/* ---------------------------------------------------------------- records of runs */

/* A plan that is measured. All is borrowed. */
typedef struct hone_subject {
  const hone_engine *engine;
  const hone_plan *plan;
  hone_context *context;        /* of the plan */
  const hone_tensor *const *in; /* as hone_context_run takes them */
  const char *device;           /* of the engine; NULL: "cpu" */
  int level;                    /* of optimisation, for the record */
  double rss_peak;              /* bytes, for the record; 0: as the run saw it */
  /* Before every measured run; it counts as part of it (hone_context_stage_begin says what it is). NULL */
  hone_status (*before)(void *arg, hone_error *error);
  /* Adds to a record what only the caller knows: the model's name, options. NULL */
  void (*describe)(void *arg, hone_facts *facts);
  void *arg;
} hone_subject;

/* What was recorded of runs. */
typedef struct hone_recording {
  hone_facts *facts;
  hone_profile *profile;
} hone_recording;

typedef struct hone_recording_options {
  uint32_t warmups;
  uint32_t runs;  /* 0: 30 */
  double seconds; /* fewer runs (at least 5) when they would take longer, all subjects together; 0: none */
  double max_seconds;   /* of one run, and of everything behind the runs; 0: none */
  double peaks_seconds; /* of that, of measuring the machine's peaks; 0: as long as it usually takes */
  const char *filter;   /* layers to look at, as hone_profile_options; NULL: all */
  bool counters;        /* hardware counters as well: of these layers, or on an accelerator of all */
  const hone_counting *counting; /* of the processor, begun before the engine; NULL: none */
  const char *uncounted;         /* why there is none; NULL: not asked for */
  bool keep;                     /* when cancelled the runs that are complete are the record (one subject) */
  hone_peaks *peaks;             /* NULL: of this record alone */
  const hone_watch *watch;
} hone_recording_options;

/* Warms up and records n subjects in alternating blocks of runs, so that what the machine does meanwhile hits
 * all alike. out[n]: free each with hone_recording_free; after an error there are none. */
HONE_API hone_status hone_subjects_record(const hone_subject *subjects, uint32_t n,
                                          const hone_recording_options *options, hone_recording *out,
                                          hone_error *error);
HONE_API void hone_recording_free(hone_recording *recording);

/* Latencies in ms of up to `runs` runs, none begun after max_seconds (0: none) save the first, which also
 * bound each: samples[runs], and where seen is not NULL what the system did during each, seen[runs]. *n: how
 * many there are, also after an error. Nothing is recorded, so this is the latency itself. */
HONE_API hone_status hone_runs_measure(const hone_subject *subject, uint32_t runs, double max_seconds,
                                       const hone_watch *watch, double *samples, hone_disturbance *seen,
                                       uint32_t *n, hone_error *error);

/* Degrees Celsius of the processor (NULL, "cpu") or the accelerator now; NaN where it cannot be read. */
HONE_API double hone_temperature(const char *device);

/* ---------------------------------------------------------------- long runs
 *
 * Does latency, memory, temperature or clock move? Which runs were slow, and what was different then? */
#define HONE_STEADY_WINDOWS 120
#define HONE_MOST_SLOW_RUNS 32
/* How many times the usual latency a run must take to be called slow; as hone_spread_explain. */
#define HONE_SLOW_FACTOR 1.5

/* What is sampled at the end of every window of time; NaN: not read. */
#define HONE_STEADY_SERIES(X)                                                                                \
  X(latency_ms) /* median of the window's runs */                                                            \
  X(p95_ms)                                                                                                  \
  X(rss_mb)           /* MiB */                                                                              \
  X(pool_used_mb)     /* of the device's pool, MiB: held by models and contexts */                           \
  X(pool_reserved_mb) /* taken from the system or driver */                                                  \
  X(temperature_c)                                                                                           \
  X(clock_mhz)                                                                                               \
  X(others_pct) /* processor time that other processes took */                                               \
  X(involuntary_switches)                                                                                    \
  X(voluntary_switches)                                                                                      \
  X(minor_faults)                                                                                            \
  X(major_faults)

typedef struct hone_slow_place {
  hone_slow_run run; /* its names are those below, or NULL */
  char step[128], pause_before[128];
} hone_slow_place;

typedef struct hone_steady {
  double seconds; /* asked for */
  size_t n;       /* windows */
  uint64_t runs;
  double measured_ms;                     /* all runs together */
  double time_s[HONE_STEADY_WINDOWS + 1]; /* since the start, at a window's end */
#define X(name) double name[HONE_STEADY_WINDOWS + 1];
  HONE_STEADY_SERIES(X)
#undef X
  hone_drift latency, rss, temperature, clock;
  double throttles;  /* thermal slow-downs meanwhile; NaN */
  uint32_t reclaims; /* how often the pools had surged, and gave back what was free */
  hone_system_sample last;
  char device_unread[320];                   /* why an accelerator's sensors cannot be read; "" */
  hone_slow_place slow[HONE_MOST_SLOW_RUNS]; /* by what they lost, worst first */
  size_t n_slow;
  hone_recording record; /* a window is an iteration, with its median run as wall */
  hone_findings *findings;
} hone_steady;

typedef struct hone_steady_options {
  double seconds;         /* above 0 */
  double max_seconds;     /* of one run; 0: none */
  double *samples;        /* [most] latencies in ms of runs, evenly spread over the time; NULL: not kept */
  hone_disturbance *seen; /* [most] what the system did during them; NULL: not kept */
  uint32_t most;
  const hone_watch *watch;
} hone_steady_options;

/* Runs the subject for so long. *kept (may be NULL): samples that were filled. Cancelled after the first
 * windows, what was seen until then counts. Free with hone_steady_free. */
HONE_API hone_status hone_steady_measure(const hone_subject *subject, const hone_steady_options *options,
                                         uint32_t *kept, hone_steady *out, hone_error *error);
HONE_API void hone_steady_free(hone_steady *steady);

/* ---------------------------------------------------------------- parts of networks (hone demo) */

typedef struct hone_demo_machine {
  const char *device; /* NULL: "cpu" */
  uint32_t threads;
  uint32_t runs;      /* 0: 20 */
  int64_t size;       /* of networks that take one; 0: their own */
  const char *narrow; /* precision of rows that name none; NULL: "bf16", on an accelerator "fp16" */
} hone_demo_machine;

/* A network of the zoo, and how it is planned. */
typedef struct hone_demo_row {
  const char *label; /* the caller's word for it; NULL: none */
  const char *network;
  const char *precision; /* as in hone_plan_options; NULL: the machine's narrow one */
  const char *passes;    /* as there */
  const char *tactics;   /* as in hone_engine_options; NULL: all */
  bool separate;
  hone_chains chains;
  bool part;        /* of a network: what brings inputs into its layout and reads its output does not count */
  bool codes;       /* quantised to 8 bits on random samples; `precision` is of what stays float */
  bool boxes;       /* of a detector, with what finds them: hone_zoo_options.boxes */
  bool hosted;      /* what no tactic takes may run on the host: else such a row is not measured */
  bool accelerated; /* for accelerators alone */
} hone_demo_row;

typedef struct hone_demo_result {
  bool measured;
  char why[256];              /* it was not */
  double ms, h2d_ms, end_ms;  /* medians: the steps; copies of inputs; the whole call */
  double flops, bytes, moved; /* moved: bytes of all steps, each tensor as often as it is read and written */
  uint32_t steps;
  double conv_share; /* of the steps' time; negative: not asked for */
  double steps_ms;   /* all steps of the profile */
  double block_ms;   /* steps of the block's nodes, when asked for; of `boxes`: of what finds them */
  double memory;     /* bytes: activations, constants, workspace */
  char shape[96];    /* of the last step that counts: "f32[4x512x28x28]" */
} hone_demo_result;

/* Nodes of a network that are the part in it, but for the first occurrence. */
typedef struct hone_demo_block {
  char (*name)[128];
  uint32_t n;
} hone_demo_block;

/* Of the blocks behind the first one: what makes, normalises, adds and activates tensors of as many channels
 * as `shape` has. A block ends with the activation behind its sum. Free with hone_demo_block_free. */
HONE_API hone_status hone_demo_block_find(const hone_demo_machine *machine, const char *network,
                                          int64_t batch, const char *shape, hone_demo_block *out,
                                          hone_error *error);
HONE_API void hone_demo_block_free(hone_demo_block *block);
/* One row with this batch; block: also what its nodes take, or NULL; shares: also profile it for conv_share.
 * Fails when memory and the like run short; what the device cannot do is a result that was not measured. */
HONE_API hone_status hone_demo_measure(const hone_demo_machine *machine, const hone_demo_row *row,
                                       int64_t batch, bool shares, const hone_demo_block *block,
                                       hone_demo_result *out, hone_error *error);

/* ---------------------------------------------------------------- what 8 bits bring (hone demo int8) */

typedef struct hone_int8_options {
  hone_model *model;                 /* classifier with one input; NULL: MobileNetV2 of the zoo */
  const hone_dataset *set;           /* labelled; NULL: agreement with f32 on generated inputs */
  const hone_preprocess *preprocess; /* of its pictures; NULL: as zeroed */
  const char *calib; /* samples for the ranges (hone_quantize_options); NULL: up to 64 of the set */
  int64_t batch;     /* where the model leaves it open */
  uint32_t samples;  /* generated ones; 0: 32 */
  const hone_watch *watch;
} hone_int8_options;

/* Names of layers that stay in 16 bits in the mixed row. */
enum { HONE_INT8_ROWS = 4, HONE_INT8_KEPT = 8 };

typedef struct hone_int8_row {
  const char *label; /* "FP32", "BF16", "INT8", "mixed"; static */
  bool measured;
  char why[256];                 /* it was not */
  double ms, end_ms;             /* medians: the steps, the whole call */
  uint64_t weights, activations; /* bytes of the plan */
  uint64_t right, samples;       /* as labelled, or as f32 says */
  double share, low, high;       /* of them, with its 95 % interval */
} hone_int8_row;

typedef struct hone_int8_table {
  hone_int8_row row[HONE_INT8_ROWS];
  int64_t batch;
  bool labelled;
  uint32_t answers;      /* different ones among f32's to the generated inputs: 1 says little of agreement */
  uint32_t layers, kept; /* in 8 bits in the third row; of these, not in the fourth */
  char name[HONE_INT8_KEPT][128];
  /* The fourth row against the third: layers stay wide by what they lose by themselves, which need not be
   * what answers hang on. samples 0: one of them was not measured. */
  hone_eval_change mixed; /* a: 8 bits, b: mixed */
} hone_int8_table;

/* One model as it is, in 16 bits, in 8 bits, and in 8 bits but for the layers that lose most, which stay in
 * 16 bits: at least one, at most a tenth of them. A row that the device cannot do is a result that was not
 * measured. */
HONE_API hone_status hone_int8_measure(const hone_demo_machine *machine, const hone_int8_options *options,
                                       hone_int8_table *out, hone_error *error);

/* ---------------------------------------------------------------- the gate's processes */

#define HONE_GATE_MOST 500

/* One side: a shell command, or times that were measured earlier. */
typedef struct hone_gate_side {
  char label[300];    /* for errors */
  char command[6000]; /* "": none, only `ms` */
  double ms[HONE_GATE_MOST];
  uint32_t n;
} hone_gate_side;

typedef struct hone_gate_run {
  hone_gate_side old, now;
  bool wall;        /* what counts is the whole process, not the latency that it reports */
  bool given;       /* that was asked for; otherwise it is found out */
  bool timeout;     /* max_seconds ended it */
  bool silent;      /* it failed because a command printed no report where its latency was asked for */
  double threshold; /* as in hone_gate_options */
  double seconds;   /* that it took */
  hone_gate_result result;
} hone_gate_run;

/* Runs both commands in turn, a process each, until hone_gate_pairs has decided, max_seconds (0: none) are
 * over, or `most` pairs (12 to HONE_GATE_MOST) are done. A command prints what `hone bench --json` does, or
 * the time of its process counts. A process that fails is HONE_ERROR_INPUT with the last line that it wrote
 * on standard error, or the status of a hone that failed; its whole group is ended with it. */
HONE_API hone_status hone_gate_run_pairs(hone_gate_run *run, uint32_t most, double max_seconds,
                                         const hone_watch *watch, hone_error *error);
/* n processes of `now` alone, judged by hone_gate_sets against the times that `old` has. HONE_ERROR_BUDGET:
 * max_seconds were over before one process had ended. */
HONE_API hone_status hone_gate_run_new(hone_gate_run *run, uint32_t n, double max_seconds,
                                       const hone_watch *watch, hone_error *error);
/* Whether two models (with shapes bound as far as they are known) take and give the same: HONE_ERROR_INPUT
 * names the first difference, at a_name, and what either has. Inputs with a value of their own do not count.
 */
HONE_API hone_status hone_same_ports(const hone_model *a, const char *a_name, const hone_model *b,
                                     const char *b_name, hone_error *error);

/* ---------------------------------------------------------------- the loop
 *
 * Measure, explain, change, prove, measure again: what `hone loop` does, up to its files. */
typedef enum hone_loop_stage {
  HONE_LOOP_RUN = 0,  /* the plan at level 0 is there, and runs next */
  HONE_LOOP_DIAGNOSE, /* it is measured, and the change is rehearsed */
  HONE_LOOP_OPTIMIZE, /* the prediction is made; nothing that could be measured is there yet */
  HONE_LOOP_VERIFY,
  HONE_LOOP_PROFILE, /* both plans are measured in alternation */
  HONE_LOOP_DONE
} hone_loop_stage;

/* All that the loop found; what a stage has not reached is zero or NULL. Free with hone_loop_free. */
typedef struct hone_loop {
  hone_plan *plan;      /* the model as it is, from HONE_LOOP_PROFILE on the changed one */
  hone_recording first; /* of the model as it is, before anything was changed */
  hone_findings *findings;
  hone_rehearsal rehearsal;
  hone_precision_choice precision; /* where that was asked for */
  double predicted_pct;            /* (before / after - 1) * 100 */
  double predicted_ms;             /* after the change; 0: only the gain was predicted */
  double predicted_unsure_ms; /* the change was less than what can be told on this machine, which is so much,
                                 and counts as none; 0: it was not */
  char predicted_at[32];      /* ISO 8601, UTC */
  char predicted_by[240];     /* what it rests on, for people */
  hone_verify_result verdict;
  hone_recording before, after; /* in alternation */
  hone_comparison *comparison;
  hone_findings *left;   /* what is left to do, by `after` */
  hone_loop_stage stage; /* the last one that began */
  bool late;             /* max_seconds were over before it */
  bool within;           /* or in the middle of it */
} hone_loop;

typedef struct hone_loop_options {
  const char *device; /* of the engine; NULL: "cpu" */
  /* Of both plans, save levels: the first one's is 0, the second one's this (-1: 2; 1 to 3). NULL: level 2.
   */
  const hone_plan_options *plan;
  /* From level 2 on: the second plan's precision is chosen so (its shapes, threads, batch and progress are
   * the loop's); NULL: as the plan says. */
  const hone_precision_options *precision;
  /* By hone_model_input; NULL, also in place of one: seeded random values, or its initializer. Borrowed. */
  const hone_tensor *const *inputs;
  uint64_t seed;          /* 0: 1 */
  uint32_t threads;       /* of the proof; 0: all */
  uint32_t verify_inputs; /* 0: as hone_verify */
  double max_seconds;     /* its stages share them; HONE_ERROR_BUDGET when they are over; 0: none */
  double spent_ms;        /* of that, before the call: loading */
  const hone_diagnose_options *diagnose; /* NULL: defaults */
  hone_peaks *peaks;                     /* NULL: of this loop alone */
  void (*describe)(void *arg, hone_facts *facts,
                   int level); /* as in hone_subject, of the plan of that level */
  /* A stage begins, or all is done; a failure ends the loop. NULL */
  hone_status (*begins)(void *arg, hone_loop_stage stage, const hone_loop *so_far, hone_error *error);
  void *arg; /* of the two */
  const hone_watch *watch;
} hone_loop_options;

/* The model's plans are made on the engine, and measured alone on it. What was found before a failure stays
 * in *out, which is to be freed in any case. An answer that differs is no error: out->verdict says so. */
HONE_API hone_status hone_loop_run(hone_engine *engine, hone_model *model, const hone_loop_options *options,
                                   hone_loop *out, hone_error *error);
HONE_API void hone_loop_free(hone_loop *loop);

#ifdef __cplusplus
}
#endif
#endif
