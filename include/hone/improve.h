/* Proving that answers are still right, and measuring machines and models. */
#ifndef HONE_IMPROVE_H
#define HONE_IMPROVE_H

#include <hone/dataset.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_verdict {
  HONE_VERDICT_SAME = 0,
  HONE_VERDICT_DIFFERENT,
  HONE_VERDICT_MISTRUSTED
} hone_verdict;

typedef struct hone_verify_options {
  uint32_t inputs;    /* random inputs; 0: 100. Below 8, no edge values are tried */
  uint64_t seed;      /* 0: 1 */
  double tolerance;   /* largest |a - b| relative to the reference output's range; 0: by dtype (f32 1e-4) */
  double max_seconds; /* 0: 30; fewer random inputs are used when it is spent (at least 1). Edge values take
                       * up to a quarter of it besides */
  uint32_t threads;
  int64_t batch;
  const hone_binding *bindings;
  uint32_t n_bindings;
  bool (*progress)(void *arg, uint32_t done, uint32_t total); /* false: cancel; NULL */
  void *progress_arg;
  int level;             /* of optimisation at which b runs, 1 to 3; 0: 2 */
  const char *device;    /* b runs there; NULL: the CPU. The reference is the CPU in any case */
  const char *precision; /* b runs in it (judged as results of that type are), save in these nodes; NULL: the
                            file's, as in hone_plan_options */
  const char *const *f32_nodes;
  uint32_t n_f32_nodes;
  const char
      *plan; /* a saved plan in place of b: run as it is, at its shapes; threads must be its own or 0 */
  /* Samples in place of random values for the reference's input `data_input`, evenly spread over the set; the
   * other inputs stay random. NULL: none. One that cannot be read is an error. */
  const hone_dataset *data;
  const hone_preprocess *preprocess; /* of them; NULL: as zeroed */
  uint32_t data_input;
  /* In place of random values, by input of a (hone_model_inputs of them); without bytes: random. Edge values
   * still take their places. NULL: none. All given: one input. */
  const hone_data *given;
  /* Sides "reference" and "optimized", on the first input. What a fusion has swallowed is not put for the
   * second. HONE_ERROR_USAGE when the reference has no such name. NULL: none. */
  const hone_dump *dump;
} hone_verify_options;

/* How far two right evaluations in f32 of one class of operators may lie apart when they get equal inputs and
 * differ only in the order of their arithmetic. Strings are static. */
typedef struct hone_tolerance {
  const char *kind;    /* "sum of products" */
  const char *formula; /* K: terms of one sum, u: 2^-24, gamma(K) = K u / (1 - K u) */
  const char *of;      /* what `share` is a share of */
  const char *source;
  uint32_t nodes; /* of the model, as it ran */
  uint64_t terms; /* K, the largest among them; 0: the class has none, or it is not known */
  double share; /* the bound of that node; of data: the least that its figures can be. Negative: no formula */
  char largest[64]; /* that node's name, cut where it is longer */
} hone_tolerance;
#define HONE_MOST_TOLERANCES 8

/* One step held against the bound of its class, on the inputs that it had itself. */
typedef struct hone_step_judgement {
  const char *kind; /* of hone_tolerance; NULL: no step was judged */
  uint64_t terms;
  double bound, measured; /* absolute, where measured / bound is largest */
  int64_t element;
  bool over; /* the step computes wrongly; else its inputs or constants differ, or roundings add up */
} hone_step_judgement;

typedef struct hone_verify_result {
  hone_verdict verdict;
  uint32_t inputs;        /* random ones, compared */
  uint32_t inputs_wanted; /* there was no time for more than `inputs` of them */
  /* Zeros, ones, extremes of the inputs' types and the like, in all inputs and in each alone: compared; not
   * judged, because the reference refuses them, overflows, or moves as much when they move in the last place;
   * and all of them, of which some may have found no time. */
  uint32_t edge_inputs, edge_inputs_unjudged, edge_inputs_wanted;
  double max_abs, max_rel; /* max_rel: relative to the output's range */
  double tolerance;
  char reason[256];               /* why different or mistrusted */
  char first_different_node[128]; /* "" when same */
  char reference[64];             /* what the reference side ran: "scalar reference", "avx2 tier"... */
  /* Quantised models without b, and with one whose answers differ: every step is also run on the reference's
   * own values, where right answers are those of some choice of roundings. */
  uint32_t steps_compared; /* 0: no such model */
  double worst_levels;
  double differing;  /* largest share of a value's elements that differ by a level, */
  double astray;     /* and of those that no rounding of what is about halfway between two levels makes */
  bool judged_steps; /* all of its codes were compared: the verdict stands on these, and max_rel is
                        only told; tolerance is 0 */
  /* The classes of operators in what ran, with the bound of a pure re-ordering of f32 */
  uint32_t n_tolerances;
  hone_tolerance tolerances[HONE_MOST_TOLERANCES];
  hone_step_judgement judgement; /* of the first different node, where it runs in f32 on the CPU */
} hone_verify_result;

/* Compares model b (optimised, default flags; NULL: a itself) with the reference side of a on the same random
 * inputs plus edge values. */
HONE_API hone_status hone_verify(hone_model *a, hone_model *b, const hone_verify_options *options,
                                 hone_verify_result *out, hone_error *error);

/* What a caller allows when hone chooses the precision of each step. */
typedef struct hone_precision_options {
  double budget;      /* largest |narrow - f32| relative to an output's range; 0: 0.01, for fp16 0.002 */
  uint32_t samples;   /* random inputs that choose; 0: 3. Eight others check */
  uint64_t seed;      /* 0: 1 */
  double max_seconds; /* 0: 60; then what is proven so far is the answer */
  uint32_t threads;
  int64_t batch;
  const hone_binding *bindings;
  uint32_t n_bindings;
  bool (*progress)(void *arg, uint32_t done, uint32_t total); /* false: cancel; NULL */
  void *progress_arg;
  /* Where the model is to run; NULL: the CPU. An accelerator also stores what is between narrow steps so. */
  const char *device;
  const char *narrow; /* "bf16" or, on an accelerator, "fp16"; NULL: the latter where it can be */
} hone_precision_options;

/* Which nodes stay f32 so that the outputs keep the budget. */
typedef struct hone_precision_choice {
  char **f32_nodes; /* for hone_plan_options */
  uint32_t n_f32_nodes;
  uint32_t candidates;     /* steps with products; on an accelerator all steps */
  uint32_t samples, plans; /* inputs that chose; plans built on the way */
  uint32_t held_out;       /* other inputs, on which the choice was checked */
  uint32_t returned;       /* times that more went back to f32, because they did not keep the budget */
  double budget;
  double error_bf16;     /* everything narrow (in `narrow`) */
  double error;          /* as chosen; 0 when every step stays f32 */
  double error_held_out; /* the same on the inputs that were held out: within the budget */
  const char *narrow;    /* "bf16" or "fp16": for hone_plan_options.precision; static */
} hone_precision_choice;

/* Runs the model in f32 and in bf16 on the same inputs and moves the steps that cost most accuracy for their
 * work back to f32 until the budget is kept, also on inputs that did not choose. Deterministic, unless
 * max_seconds ends it early. */
HONE_API hone_status hone_precision_choose(hone_model *model, const hone_precision_options *options,
                                           hone_precision_choice *out, hone_error *error);
HONE_API void hone_precision_choice_free(hone_precision_choice *choice);

/* Measured peaks of this machine. GFLOP/s and GB/s; 0: not measured. */
typedef struct hone_roofs {
  char cpu[128];
  uint32_t threads;
  double f32_gflops, bf16_gflops, int8_gops;
  double int8_vector_gops;                 /* of vectors, where int8_gops is of tiles (AMX); else 0 */
  double l1_gbs, l2_gbs, l3_gbs, dram_gbs; /* reading */
  uint64_t l1_bytes, l2_bytes, l3_bytes;   /* capacity of one cache; 0: the system does not say */
  /* How they were measured: every figure is the best of so many windows. */
  uint32_t windows;
  double spread; /* (best - worst) / best of the windows, of the figure that differed most */
  double others; /* share of the processors' time that other processes took, 0 to 1, in the quietest window */
  double delay;  /* share of the threads' time in which they were ready and had no processor, there */
  bool quiet;    /* enough of the windows were quiet (HONE_ROOFS_QUIET) for the figures to be kept */
} hone_roofs;

/* With a larger share of others, or a longer wait for a processor, a window's figures may be too low. */
#define HONE_ROOFS_QUIET 0.1

/* How peaks are to be measured. NULL where these are taken: all zero. */
typedef struct hone_roofs_options {
  bool again;         /* measure, whatever the cache knows */
  double max_seconds; /* 0: 6, of an accelerator 120. What is not measured by then stays 0 */
  bool (*progress)(void *arg, uint32_t done, uint32_t total); /* total 0: not known; false: cancel; NULL */
  void *progress_arg;
} hone_roofs_options;

/* Measures (1 to 2 s, longer while others are busy), or reads the cache of an earlier measurement (keyed by
 * CPU, instruction tier, threads and version). Figures are cached when they were measured while the machine
 * was quiet. HONE_ERROR_CANCELLED when progress says so. */
HONE_API hone_status hone_roofs_measure(uint32_t threads, const hone_roofs_options *options, hone_roofs *out,
                                        hone_error *error);

/* A run was faster than `roofs`, or they were measured once more: takes the larger of each figure (nothing
 * makes a machine faster than it is), and caches the outcome where one of the two was measured in quiet. */
HONE_API void hone_roofs_raise(hone_roofs *roofs, const hone_roofs *seen);

/* Measured peaks of an accelerator, through plans of hone's own: matrix products by type (f16, bf16, tf32,
 * int8, f32), and a copy. One of gflops and gbs is set; both are 0 where the device cannot. */
typedef struct hone_device_roof {
  char name[8]; /* as in facts: "f16", "DRAM" */
  double gflops, gbs;
  char by[48];   /* the tactic that reached it */
  double spread; /* (median - best) / best of its runs' times */
} hone_device_roof;

#define HONE_MOST_ROOFS 8
typedef struct hone_device_roofs {
  char device[128];
  hone_device_roof roof[HONE_MOST_ROOFS];
  uint32_t count;
} hone_device_roofs;

/* Measures device "cuda" or "cuda:N" (some seconds; of an emulated one small matrices only), or reads the
 * cache of an earlier measurement (keyed by device, driver, compiler and version). A size of matrices that
 * would take more than max_seconds is not tried, and nothing is begun after them: peaks that were not
 * measured are 0, all of them where only matrices below 4096 fit into the time; the cache keeps whole
 * measurements. HONE_ERROR_CANCELLED when progress says so: between two runs. */
HONE_API hone_status hone_device_roofs_measure(const char *device, const hone_roofs_options *options,
                                               hone_device_roofs *out, hone_error *error);
/* As hone_roofs_raise: the larger of each figure, cached when all were measured. */
HONE_API void hone_device_roofs_raise(const char *device, hone_device_roofs *roofs,
                                      const hone_device_roofs *seen);

/* ---------------------------------------------------------------- tuning
 *
 * Measures every tactic that takes a step, on the step's real shapes, and keeps the choice in the engine's
 * table of tuned tactics and its file; plans that the engine makes afterwards use it. The same table gives
 * the same plan. */

/* One way to run a step. */
typedef struct hone_tune_candidate {
  const char *tactic;
  uint32_t threads;   /* 0: all of the engine; 1: on one thread */
  double predicted_s; /* by the tactic's cost model */
  double median_s;    /* measured */
  double spread_s;    /* half the width of the median's 95 % interval (1.57 IQR / sqrt n) */
  bool differs;       /* its answer to the same input is not that of the others: never chosen */
} hone_tune_candidate;

typedef enum hone_tune_state {
  HONE_TUNE_MEASURED = 0, /* now */
  HONE_TUNE_KNOWN,        /* by an earlier measurement */
  HONE_TUNE_ALONE,        /* only one tactic takes it: nothing to choose */
  HONE_TUNE_SKIPPED       /* time was up, enough steps were measured, or the caller stopped */
} hone_tune_state;

/* Steps that are the same work share a row. */
typedef struct hone_tune_step {
  hone_tune_state state;
  uint32_t step;  /* of the plan: the first of them */
  uint32_t count; /* how many there are */
  const char *name, *what;
  char shape[96];
  uint32_t n_candidates;
  const hone_tune_candidate *candidate;
  uint32_t untuned; /* index of what a plan without measurements chooses */
  uint32_t chosen;  /* index of the choice: `untuned` unless another one is faster by more than noise */
} hone_tune_step;

typedef struct hone_tune_report {
  uint32_t n_steps;
  const hone_tune_step *step; /* strings of the plan are borrowed from it */
  uint32_t measured, known, alone, skipped;
  double seconds; /* that it took */
  bool stopped;   /* by the caller */
  bool weighed; /* the plan chose between one step and several: plans with HONE_CHAINS_NEVER and _ALWAYS hold
                   what else deserves measuring */
  char file[512]; /* where the choices were written; "" when nowhere */
  void *impl;
} hone_tune_report;

typedef struct hone_tune_options {
  double max_seconds; /* 0: as long as it takes; what is expensive in the plan is measured first */
  uint32_t max_steps; /* that are measured, the most expensive ones; 0: all */
  bool again;         /* measure what is known, too */
  bool alone;         /* and what only one tactic takes, for its time */
  bool unsaved;       /* the engine alone learns the choices: hone_tune_save writes the file */
  /* done and total count measured steps; seconds_left is an estimate (< 0: none yet). False: stop and keep
   * what is measured. NULL: silent. */
  bool (*progress)(void *arg, uint32_t done, uint32_t total, double seconds_left);
  void *progress_arg;
} hone_tune_options;

/* No other plan of the engine may run meanwhile. A file that cannot be written is HONE_ERROR_IO; the engine
 * knows the choices all the same and *out is valid. */
HONE_API hone_status hone_tune(hone_plan *plan, const hone_tune_options *options, hone_tune_report *out,
                               hone_error *error);
HONE_API void hone_tune_report_free(hone_tune_report *report);
/* Writes what the plan's engine has learned into its file (hone_engine_tuned), over what the file holds of
 * the same steps; nothing where the engine has none. */
HONE_API hone_status hone_tune_save(hone_plan *plan, hone_error *error);

/* Rounds in which two things are measured in turn, at most. */
#define HONE_TUNE_ROUNDS 15
/* Times of n rounds (1 to HONE_TUNE_ROUNDS): are those after longer, by more than noise? That is how tactics
 * are chosen: the intervals of the medians do not meet, and the difference is more than 2 %. False for NULL.
 */
HONE_API bool hone_times_slower(const double *before, const double *after, uint32_t n);

/* ---------------------------------------------------------------- rehearsing
 *
 * What will a plan take on this machine? Cost models know which kernel is faster, and not how fast this
 * processor is; so the steps of a preview are timed one by one before the plan is built, what is expensive
 * first: each with memory of its own, random values, and caches as the rest of the model would leave them. */
typedef struct hone_rehearsal_options {
  double max_seconds;          /* what is not timed by then goes by its kernel's known speed; 0: 3 */
  bool (*progress)(void *arg); /* asked between runs; false: stop with HONE_ERROR_CANCELLED. NULL */
  void *progress_arg;
} hone_rehearsal_options;

typedef struct hone_rehearsal {
  uint32_t steps; /* of the plan that `known` does not have */
  uint32_t timed; /* of these */
  double seconds; /* that it took */
} hone_rehearsal;

/* Adds the steps of a plan to the facts of another plan of the same model, as hone_plan_preview does, with
 * the times that they took. known: the plan whose facts these are, or NULL: steps that it also has, with the
 * same tactic and but for what rides along at next to no cost, are not timed again. Accelerators: nothing is
 * timed. No other plan of the engine may run meanwhile. HONE_ERROR_USAGE for NULL. */
HONE_API hone_status hone_plan_rehearse(const hone_plan *plan, const hone_plan *known,
                                        const hone_rehearsal_options *options, hone_facts *facts,
                                        hone_rehearsal *out, hone_error *error);

/* ---------------------------------------------------------------- kernels
 *
 * How fast are this machine's kernels? Cost models were written on another one. So what steps really took,
 * over what their models said, is kept by tactic and by where a step's tensors fit, for this processor,
 * instruction tier, thread count and version. It speaks for steps that a rehearsal has no time for. */
typedef enum hone_kernel_place {
  HONE_KERNEL_OWN_CACHES, /* all of a step's tensors fit the threads' second-level caches */
  HONE_KERNEL_LAST_CACHE, /* the last level */
  HONE_KERNEL_MEMORY      /* neither */
} hone_kernel_place;
#define HONE_KERNEL_PLACES 3
#define HONE_MOST_KERNELS 96

typedef struct hone_kernel_speed {
  char tactic[48];
  double factor[HONE_KERNEL_PLACES]; /* measured / cost model; 0: not known */
} hone_kernel_speed;

typedef struct hone_kernel_speeds {
  uint32_t count;
  hone_kernel_speed kernel[HONE_MOST_KERNELS];
  double seconds; /* that measuring took now */
  bool cached;    /* of an earlier measurement */
  bool quiet;     /* others took at most HONE_ROOFS_QUIET of the processors: only then is it kept */
} hone_kernel_speeds;

typedef struct hone_kernels_options {
  bool again;                  /* measure, whatever the cache knows */
  double max_seconds;          /* 0: 4 */
  bool (*progress)(void *arg); /* asked between runs; false: stop with HONE_ERROR_CANCELLED. NULL */
  void *progress_arg;
} hone_kernels_options;

/* Calibrates by rehearsing the steps of small built-in networks (2 to 4 s), or reads the cache. The CPU only:
 * HONE_ERROR_UNSUPPORTED elsewhere. No plan of the engine may run meanwhile. */
HONE_API hone_status hone_kernels_measure(hone_engine *engine, const hone_kernels_options *options,
                                          hone_kernel_speeds *out, hone_error *error);

/* A share by which a run contradicts what is known of a kernel. */
#define HONE_KERNELS_DIFFER 0.25

/* What the steps of a plan took (seconds of one execution, by step; 0 or less: not measured; n:
 * hone_plan_steps) is compared with what is known: kernels that are new, or that a run contradicts, are known
 * by it from then on. changed (NULL: not asked): how many figures that were. */
HONE_API hone_status hone_kernels_learn(const hone_plan *plan, const double *step_seconds, uint32_t n,
                                        uint32_t *changed, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
