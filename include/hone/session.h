/* Engine, plan, context: how a model runs.
 *
 * An engine is a device with its threads. A plan is a model compiled for an engine and fixed input shapes:
 * immutable, and shared by any number of contexts. A context is one run's memory; different contexts may run
 * at the same time, one context serves one thread at a time: a call that finds another one at work in it is
 * HONE_ERROR_USAGE and changes nothing (hone_context_cancel may come from anywhere). Calls with NULL where an
 * object or a result belongs are HONE_ERROR_USAGE, too; getters give 0, false, NULL or "", and what ends an
 * object takes NULL for none. */
#ifndef HONE_SESSION_H
#define HONE_SESSION_H

#include <hone/facts.h>
#include <hone/model.h>
#include <hone/plugin.h>
#include <hone/system.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_engine hone_engine;
typedef struct hone_plan hone_plan;
typedef struct hone_context hone_context;
typedef struct hone_weights hone_weights;

#define HONE_MAX_THREADS 1024 /* of an engine */

typedef struct hone_engine_options {
  const char *device;  /* NULL or "cpu"; "cuda" or "cuda:N" */
  uint32_t threads;    /* 1 to HONE_MAX_THREADS; 0: all processors this process may use, within its
                         container's quota of time, at most so many */
  const char *isa;     /* NULL: the best (or HONE_CPU); "scalar", "avx2", "avx512"...; cuda: "sm_80"... */
  const char *tactics; /* comma-separated globs of tactic names, "-glob" excludes, each fits one; NULL:
                          HONE_TACTICS or all */
  const char
      *tuning; /* file of tuned tactics (hone_tune); "off": none; NULL: HONE_TUNE_CACHE or the user's cache */
} hone_engine_options;

/* Opens the device and starts its threads; options may be NULL. Errors name what is wrong or missing. */
HONE_API hone_status hone_engine_create(const hone_engine_options *options, hone_engine **out,
                                        hone_error *error);
HONE_API void hone_engine_destroy(hone_engine *engine); /* after its plans */
HONE_API const hone_machine *hone_engine_machine(const hone_engine *engine);
/* The most bytes of an accelerator's own memory that this engine has taken so far: weights, activations,
 * workspace (the driver's context and what libraries take for themselves are not in it). 0 for the processor
 * and for NULL. */
HONE_API uint64_t hone_engine_device_peak(const hone_engine *engine);
/* What went wrong on the engine's device since the last call and was put right (a damaged kernel cache), one
 * a line, into buf; "" for nothing. */
HONE_API void hone_engine_warnings(hone_engine *engine, char *buf, size_t size);

/* An accelerator, as it is without an engine. */
typedef struct hone_device_info {
  char name[128];     /* "NVIDIA H200" */
  char driver[64];    /* "CUDA 13.0": what the driver offers */
  char compiler[64];  /* "NVRTC 13.0" */
  char libraries[96]; /* those that offer tactics: "cuDNN 9.14.0 | cuBLASLt 13.1.0"; "" for none */
  uint64_t memory_bytes, memory_free;
  hone_machine machine;
} hone_device_info;

/* What device "cuda" or "cuda:N" is; info NULL: only whether it is there. HONE_ERROR_MISSING names the
 * library or the device that is not, HONE_ERROR_USAGE a name that is none. "cpu" is always there and tells
 * nothing. */
HONE_API hone_status hone_device_about(const char *device, hone_device_info *info, hone_error *error);

/* What an accelerator's sensors say now: clocks, temperature, power. */
typedef struct hone_sensor {
  char name[24], unit[8];
  double value;
} hone_sensor;

typedef struct hone_sensors {
  hone_sensor sensor[16];
  uint32_t count;
} hone_sensors;

/* HONE_ERROR_MISSING when the device has none or they cannot be read. */
HONE_API hone_status hone_device_sensors(const char *device, hone_sensors *out, hone_error *error);

/* Tuned steps that the engine knows for its device, processor and threads, and their file ("" when tuning is
 * off). warning: why a file was not used, or "". All may be NULL. */
HONE_API uint32_t hone_engine_tuned(const hone_engine *engine, const char **file, const char **warning);

typedef enum hone_prefer {
  HONE_PREFER_SPEED = 0, /* the fastest tactic of every step */
  HONE_PREFER_MEMORY     /* the fastest of those whose packed weights take (nearly) the least bytes */
} hone_prefer;

/* Whether convolutions around a depthwise one become one step (level 2), and what a custom operator's pattern
 * describes (level 1). */
typedef enum hone_chains {
  HONE_CHAINS_FASTER = 0, /* where that is faster, by measurement (hone_tune) or prediction */
  HONE_CHAINS_NEVER,      /* what tuning compares */
  HONE_CHAINS_ALWAYS      /* with what */
} hone_chains;

typedef struct hone_plan_options {
  /* 0..3; -1: default 2, as without options. In a structure of zeros it is 0: every node as it stands. */
  int level;
  const char
      *precision; /* "f32": results as good as f32's; "bf16": matrix products may round their operands
                     to bf16 (sums stay f32), save in the nodes below; "fp16": the same to
                     f16, on the CPU with sums of 32 products in f16. NULL: as stored: bf16
                     where weights are (devices: all of them), fp16 where all are f16, on devices; else f32 */
  const char *const *f32_nodes; /* [n_f32_nodes] names of nodes that stay f32; see hone_precision_choose */
  uint32_t n_f32_nodes;
  const hone_binding *bindings;
  uint32_t n_bindings;
  int64_t batch;       /* for symbolic batch dimensions; 0: 1 */
  bool reference;      /* every step by the scalar references: the independent side of verify */
  const char *passes;  /* as in hone_optimize_options */
  double fold_seconds; /* budget for constant folding; 0: 20 */
  hone_prefer prefer;
  bool untuned; /* by cost models alone, as if nothing had been tuned */
  hone_chains chains;
  bool separate; /* every node a step of its own, otherwise as the level says: what fusion is compared with */
  bool preview;  /* only decide: steps, tactics and predicted times, nothing packed. Cannot run or be saved */
  uint32_t slices; /* of the batch, which a run takes one after the other: the steps run on a slice each time,
                      and activations take a slice's memory. 0: as many as cost models call fastest, where it
                      is proved that samples do not meet (CPU, level 2 and up); 1: the whole batch at once; n:
                      so many, or an error says why not */
  const hone_weights *weights; /* of this engine and model: where plans leave packed weights and look for
                                  them; NULL: the plan has its own */
  bool over_bound; /* outputs that can be made over an input (hone_plan_output_over: a decoder's caches)
                      always are bound, and on an accelerator these inputs, too: contexts have no room for
                      them, and a run without is HONE_ERROR_USAGE */
} hone_plan_options;

/* The plan keeps the model alive. Errors name the node. */
HONE_API hone_status hone_plan_create(hone_engine *engine, hone_model *model,
                                      const hone_plan_options *options, hone_plan **out, hone_error *error);
HONE_API void hone_plan_destroy(hone_plan *plan); /* after its contexts */
/* Makes of a plan that has no contexts one for other shapes, where that is much quicker than a new plan and
 * leads to the same: *done. It needs a plan made with hone_weights, whose other plans show how numbers follow
 * from sizes: two were made for sizes that lie on a line with these (a past that grows by one, texts of any
 * length), and hone has looked at a third. Otherwise *done is false, the plan is as it was, and a new one is
 * to be made. Bindings say all open dimensions. Names stay, descriptors of inputs and outputs say the new
 * shapes where they lie, and what else was asked of the plan (steps) is asked again; it can be neither saved
 * nor tuned any more. One thread has the plan meanwhile; several may have several plans of one hone_weights.
 * HONE_ERROR_USAGE: there are contexts; any other error: the plan can only be destroyed. */
HONE_API hone_status hone_plan_rebind(hone_plan *plan, const hone_binding *bindings, uint32_t n_bindings,
                                      bool *done, hone_error *error);

/* Packed weights that plans of one model for different shapes have in common: what of them says nothing of
 * shapes is packed by the first plan and read by all others; on an accelerator what is the same on it (of
 * plans that are made at the same time each may keep its own). Keeps the model alive and borrows the engine;
 * plans may be made with it from several threads at once. What plans still read stays when it is destroyed,
 * and what none reads is given back with the last that did. */
HONE_API hone_status hone_weights_create(hone_engine *engine, hone_model *model, hone_weights **out,
                                         hone_error *error);
HONE_API void hone_weights_destroy(hone_weights *weights);         /* before the engine */
HONE_API uint64_t hone_weights_bytes(const hone_weights *weights); /* held now, by plans */

/* ---- saved plans: decisions and packed weights in one file, which is mapped and run without packing again
 */

/* Writes the plan; the file appears whole or not at all. It fits this version of hone, this kind of processor
 * and this number of threads. */
HONE_API hone_status hone_plan_save(const hone_plan *plan, const char *path, hone_error *error);
/* True when the file is a saved plan (it may still be damaged). */
HONE_API bool hone_plan_is_saved(const char *path);
/* Threads of the engine that a saved plan wants. */
HONE_API hone_status hone_plan_saved_threads(const char *path, uint32_t *threads, hone_error *error);
/* Loads one. Damaged, cut short, or made for another version, processor or number of threads:
 * HONE_ERROR_INPUT with what to do. Checksums find damage, not malice: open only plans that you trust. */
HONE_API hone_status hone_plan_open(hone_engine *engine, const char *path, hone_plan **out,
                                    hone_error *error);
/* The file of the model that the plan was made of, "" when there was none. Borrowed. */
HONE_API const char *hone_plan_source_path(const hone_plan *plan);
HONE_API const char *
hone_plan_precision(const hone_plan *plan); /* "f32", "bf16", "fp16", "tf32" or "fp8"; static */

HONE_API uint32_t hone_plan_slices(const hone_plan *plan); /* that a run takes the batch in, 1: it is whole */
HONE_API uint32_t hone_plan_inputs(const hone_plan *plan);
HONE_API uint32_t hone_plan_outputs(const hone_plan *plan);
HONE_API const char *hone_plan_input_name(const hone_plan *plan, uint32_t i);
HONE_API const char *hone_plan_output_name(const hone_plan *plan, uint32_t i);
/* Row-major descriptors; an output's dimensions may be unknown (< 0) until it has run. With what codes mean,
 * where the model says it. */
HONE_API const hone_tensor_desc *hone_plan_input_desc(const hone_plan *plan, uint32_t i);
HONE_API const hone_tensor_desc *hone_plan_output_desc(const hone_plan *plan, uint32_t i);
/* The input over which output i may be bound, at one address and with one shape (a cache that does not grow:
 * GroupQueryAttention's); -1: none. */
HONE_API int32_t hone_plan_output_over(const hone_plan *plan, uint32_t i);
HONE_API const hone_bound_shape *hone_plan_bound(const hone_plan *plan,
                                                 uint32_t i); /* shape chosen for input i */

/* Why something did not take a step. */
typedef enum hone_refusal_why {
  HONE_REFUSED_STEP = 0, /* it does not do what the step says */
  HONE_REFUSED_OFF,      /* switched off by HONE_TACTICS */
  HONE_REFUSED_LIMIT,    /* more tactics take the step than are compared */
  HONE_REFUSED_FUSION    /* a fusion that was not made of the step */
} hone_refusal_why;

typedef struct hone_refusal {
  hone_refusal_why why;
  const char *by;   /* a tactic's name, or a fusion's */
  const char *text; /* for people */
} hone_refusal;

/* What a step is there for. */
typedef enum hone_step_role {
  HONE_STEP_COMPUTE = 0, /* nodes of the model */
  HONE_STEP_REFORMAT,    /* another layout or storage type of a value */
  HONE_STEP_COPY,        /* a value into other memory */
  HONE_STEP_CONTROL      /* bodies of If, Loop and Scan, interpreted on the host */
} hone_step_role;

/* What the plan executes, for reports. Views cost nothing and are not steps. */
typedef struct hone_step_info {
  hone_step_role role;
  const char *name, *op_type, *tactic;
  char what[192]; /* "Conv + bias + Add + Relu" */
  char shape[96]; /* of output 0 */
  char quant[64]; /* what its codes mean: "scale 0.05 zero 114"; "": they are none, or nobody says it */
  double flops, bytes, predicted_s;
  uint32_t n_nodes;      /* ONNX nodes that the step came from */
  const uint32_t *nodes; /* source node numbers, see hone_plan_source_node */
  uint32_t n_refused;
  const hone_refusal *refused; /* [n_refused] tactics that did not take it; as long as the plan lives */
  bool tuned;                  /* the tactic was chosen by measurement; predicted_s is then measured */
  uint32_t threads;            /* on which it runs; 0: all of the engine */
} hone_step_info;

/* How many; step i, its texts borrowed from the plan (false behind the last); nodes of the file. */
HONE_API uint32_t hone_plan_steps(const hone_plan *plan);
HONE_API bool hone_plan_step(const hone_plan *plan, uint32_t i, hone_step_info *info);
HONE_API uint32_t hone_plan_source_nodes(const hone_plan *plan);
/* Name and type of node i of the file, and the step that executes it (-1: folded, fused away or dead; text
 * says which). */
HONE_API bool hone_plan_source_node(const hone_plan *plan, uint32_t i, const char **name,
                                    const char **op_type, int32_t *step, const char **fate);
HONE_API const hone_rewrites *hone_plan_rewrites(const hone_plan *plan);
/* Bytes: activations arena, constants that the plan keeps (packed and unpacked), largest workspace. */
HONE_API void hone_plan_memory(const hone_plan *plan, uint64_t *arena, uint64_t *constants,
                               uint64_t *workspace);
/* The optimised graph of the plan (bound shapes); borrowed. Weights that the plan has packed have no bytes in
 * it: it is for looking at, not for saving or planning. */
HONE_API const hone_model *hone_plan_model(const hone_plan *plan);

/* ---- fusions: operators that are one step, or could nearly be */
typedef struct hone_fusion {
  bool done;        /* level 2 does it on this engine; false: `reason` says what is against it */
  const char *pass; /* not done: the pass or fusion that refused it; static */
  char what[192];   /* "Conv + bias + Relu" */
  char nodes[256];  /* names of the ONNX nodes, "a, b" */
  char reason[200];
  int level;          /* the lowest level that does it; -1: none */
  double bytes_saved; /* memory traffic of one run: writes and reads of the values between the nodes */
  int32_t step;       /* of the level-2 plan; -1: none of its own */
} hone_fusion;

typedef struct hone_fusions {
  uint32_t n;
  hone_fusion *fusion; /* done ones first, then by bytes; owned */
} hone_fusions;

/* Which operators the engine would run as one, by plans that are only previewed (their level is not read).
 * Free with hone_fusions_free. */
HONE_API hone_status hone_fusions_find(hone_engine *engine, hone_model *model,
                                       const hone_plan_options *options, hone_fusions *out,
                                       hone_error *error);
HONE_API void hone_fusions_free(hone_fusions *fusions);

/* The memory of one run at a time. To be destroyed before its plan, when no run is in it. */
HONE_API hone_status hone_context_create(hone_plan *plan, hone_context **out, hone_error *error);
HONE_API void hone_context_destroy(hone_context *context);
/* Threads of its own for the runs to come, the calling one among them: 1 to those of the engine. 0, as at
 * first: the engine's, which all contexts share: one run at a time has them, the others go on alone, each on
 * a thread that the first one then leaves free. Several contexts that run at the same time with a part of the
 * processors each keep out of each other's way. HONE_ERROR_UNSUPPORTED on devices with memory of their own.
 */
HONE_API hone_status hone_context_set_threads(hone_context *context, uint32_t threads, hone_error *error);
HONE_API const hone_plan *hone_context_plan(const hone_context *context); /* that it was made for */
/* hone_plan_rebind of its plan, which has no other context; this one goes on with it, and keeps threads and
 * memory. Results are gone, and nothing is bound to inputs and outputs any more, whether *done or not.
 * HONE_ERROR_USAGE: there are other contexts, or this one records; any other error: plan and context can only
 * be destroyed. */
HONE_API hone_status hone_context_rebind(hone_context *context, const hone_binding *bindings,
                                         uint32_t n_bindings, bool *done, hone_error *error);

/* ---- memory of the caller: what is bound to inputs and outputs counts for all runs to come, from the next
 * one on, until something else is (NULL: nothing any more). Descriptors are copied, memory is borrowed until
 * then: it outlives the runs, and nobody touches it while one is under way. Whether it fits is checked when
 * it is bound. */

/* Input i is read there in runs that are given none (NULL in the array `in`, or NULL for the array). What
 * lies there may change between runs. Type and dimensions are the plan's; a tensor that is not row-major (its
 * layout does not matter, stride says it; 0 repeats an element) is brought together once a run, in memory
 * that the context takes now. On an accelerator it may lie in the device's memory (row-major; the first step
 * reads it there) or in pinned memory, which crosses without a copy by the host: hone/device_memory.h.
 * HONE_ERROR_UNSUPPORTED: steps of the host read what lies in the device's memory. */
HONE_API hone_status hone_context_bind_input(hone_context *context, uint32_t i, const hone_tensor *tensor,
                                             hone_error *error);
/* Output i goes there, and hone_context_output tells the same. A row-major tensor in the memory that the
 * device computes in (on an accelerator its own, aligned to 256 bytes) is written by the step that makes it,
 * where the output has memory of its own; otherwise the output is copied once, when all steps are done; into
 * memory of the device, or pinned memory, by the device (HONE_ERROR_UNSUPPORTED for the device's where the
 * host makes it). After a run that failed, anything may
 * lie there. Where the run finds out the dimensions, a row-major tensor of any shape is room for as many
 * bytes, and a result that takes more is HONE_ERROR_USAGE.
 *
 * Bound outputs overlap nothing: neither each other (HONE_ERROR_USAGE here) nor inputs (HONE_ERROR_USAGE of
 * the run), but for the one that hone_plan_output_over tells: bound just there, the output is made in place
 * of the input, of which only what changes is written. Inputs may overlap each other. Outputs of strings,
 * sequences and optionals cannot be bound (HONE_ERROR_UNSUPPORTED). */
HONE_API hone_status hone_context_bind_output(hone_context *context, uint32_t i, const hone_tensor *tensor,
                                              hone_error *error);
/* hone_context_bind_output for all outputs at once: tensor[i] is that of output i, or NULL: nothing is bound
 * to it any more (tensor NULL: to any). After an error nothing is. */
HONE_API hone_status hone_context_bind_outputs(hone_context *context, const hone_tensor *const *tensor,
                                               hone_error *error);
/* Memory for an output, of at least hone_desc_bytes(desc) bytes and aligned to its elements: the shape of
 * this run, row-major. NULL: there is none, the run ends with HONE_ERROR_MEMORY. Called once a run (again
 * only where an operator that finds out its shape asks for more than it did before) on the thread that runs:
 * before the first step where the plan knows the shape, otherwise before or behind the step that makes the
 * output. It may not call functions on the context. */
typedef void *(*hone_allocate)(void *arg, uint32_t output, const hone_tensor_desc *desc);
/* Output i goes where `allocate` says, which takes the place of hone_context_bind_output. What it gives
 * overlaps nothing that the run uses, and is borrowed until the next run. */
HONE_API hone_status hone_context_bind_allocator(hone_context *context, uint32_t i, hone_allocate allocate,
                                                 void *arg, hone_error *error);

typedef struct hone_run_options {
  double max_seconds; /* 0: none */
  uint64_t max_bytes; /* of memory for data-dependent shapes; 0: none */
  uint64_t max_nodes; /* nodes executed, loop bodies included; 0: none */
} hone_run_options;

/* Runs once. in[i] belongs to plan input i: row-major tensors with the plan's shape, on the host or, where
 * desc.device says so, in the memory of the plan's device, borrowed during the call; NULL where nothing is
 * bound is HONE_ERROR_USAGE: inputs with an initializer are no plan inputs. Afterwards hone_context_output
 * gives the results. Allocates nothing when all shapes are known.
 *
 * A sequence (or optional) is a tensor of rank 0, of type HONE_SEQUENCE_OF(dtype), whose data is one
 * hone_items: hone_items list = {2, (const hone_tensor *[]){&a, &b}}; hone_tensor given =
 * {hone_desc(HONE_SEQUENCE_OF(HONE_DTYPE_F32), 0, NULL), &list}; Results are the same: ((const hone_items
 * *)hone_context_output(c, 0)->data)->item[0] is the first tensor. What is in one that is given is copied. */
HONE_API hone_status hone_context_run(hone_context *context, const hone_tensor *const *in,
                                      const hone_run_options *options, hone_error *error);

/* What a submitted run came to: told on a thread of the context, when it may be used again, also to submit
 * the next run (not to wait for it, or to end it). error holds what went wrong, and is gone afterwards. */
typedef void (*hone_done)(void *arg, hone_context *context, hone_status status, const hone_error *error);
/* The same as hone_context_run without waiting for it: the context's own thread (made by the first call) runs
 * it and then calls done, if it is not NULL; without done, a hone_context_wait that comes before the thread
 * runs it itself. Inputs are checked here and now; the tensors and their data are borrowed until the run is
 * done, the array `in` only during the call. While the run is under way the context is in use
 * (HONE_ERROR_USAGE): several contexts of one plan are several runs in flight. */
HONE_API hone_status hone_context_submit(hone_context *context, const hone_tensor *const *in,
                                         const hone_run_options *options, hone_done done, void *arg,
                                         hone_error *error);
/* Until no submitted run and no callback is under way; what the last one came to, again and again.
 * max_seconds 0: for as long as it takes; else HONE_ERROR_BUDGET when they are over, and the run goes on.
 * HONE_ERROR_USAGE in a callback of the context, and when nothing was ever submitted. hone_context_destroy
 * cancels what is under way, and waits. */
HONE_API hone_status hone_context_wait(hone_context *context, double max_seconds, hone_error *error);
/* Row-major host tensor, valid until the next run of this context; a bound one as it was bound. */
HONE_API const hone_tensor *hone_context_output(const hone_context *context, uint32_t i);
/* From any thread or signal handler: the run in progress (or the next one) ends with HONE_ERROR_CANCELLED. */
HONE_API void hone_context_cancel(hone_context *context);
/* Peak bytes that the last run really used for activations. */
HONE_API uint64_t hone_context_peak(const hone_context *context);

/* Devices with memory of their own, by their own clock; HONE_ERROR_UNSUPPORTED on others. clock: from the
 * next run on its copies and steps are timed, or no longer: a run that nobody times (so it starts) is shorter
 * by some microseconds. times: seconds of the last run: inputs in, steps, outputs back (NULL: not wanted);
 * HONE_ERROR_USAGE when it was not timed. repeat: does the steps once more, on the inputs that lie there, and
 * gives the seconds from before the first to after the last of them. */
HONE_API hone_status hone_context_clock(hone_context *context, bool on, hone_error *error);
HONE_API hone_status hone_context_times(const hone_context *context, double *h2d, double *steps, double *d2h,
                                        hone_error *error);
HONE_API hone_status hone_context_repeat(hone_context *context, double *seconds, hone_error *error);
/* The same by the host's clock and step by step, as what is not captured is given to such a device. */
typedef struct hone_issue {
  double seconds;        /* until the device has been given all of it */
  double driver_seconds; /* of these, within the driver's function that launches kernels */
  uint32_t kernels;      /* that it launched; those of libraries are not among them */
} hone_issue;
HONE_API hone_status hone_context_issue(hone_context *context, hone_issue *out, hone_error *error);

/* Adds an accelerator's hardware counters of the steps[n_steps] (numbers of plan steps; NULL: all of them) to
 * the facts that hone_context_record_end has filled: compute_pct_of_peak and memory_pct_of_peak, which then
 * decide the steps' bounds, shares of DRAM, L2, L1 and tensor units, cache hit rates, occupancy, instructions
 * a cycle, branch efficiency (docs/guide/importers.md names them). The steps are done several times, so
 * results of the last run are lost. Counters that this device lacks are left out; HONE_ERROR_MISSING says why
 * there are none at all. */
HONE_API hone_status hone_context_counters(hone_context *context, const uint32_t *steps, uint32_t n_steps,
                                           hone_facts *facts, hone_error *error);

/* Counts steps of the following runs with the processor's hardware counters (hone_counting_start, called
 * before the engine was created): steps[n_steps] are numbers of plan steps, NULL: all. Reading the counters
 * takes microseconds a step, so time other runs. counting is borrowed until hone_context_count_end, which
 * stops and adds to the facts, for each counted step, cycles, instructions, llc_references, llc_misses and
 * branch_misses of one execution (all threads, those that wait included), instructions_per_cycle,
 * llc_miss_pct, branch_misses_per_1000 (instructions) and dram_gbs_estimate (a cache line a miss); what the
 * processor does not count is noted as not measured. HONE_ERROR_UNSUPPORTED for plans of accelerators
 * (hone_context_counters), HONE_ERROR_USAGE for NULL and for an end without a beginning. */
HONE_API hone_status hone_context_count(hone_context *context, const hone_counting *counting,
                                        const uint32_t *steps, uint32_t n_steps, hone_error *error);
HONE_API hone_status hone_context_count_end(hone_context *context, hone_facts *facts, hone_error *error);

/* Records spans of the following runs into facts (one lane, one "run" span an iteration with an outer wall
 * clock); NULL stops. Memory for max_runs runs is taken at once, so that recording does not allocate. */
HONE_API hone_status hone_context_record(hone_context *context, hone_facts *facts, uint32_t max_runs,
                                         hone_error *error);
/* What the caller does around the runs: HONE_SPAN_PRE (decode, resize) before a run, HONE_SPAN_POST (NMS,
 * top-k) after it. From begin to end is one span of the record, part of T_total, which rules and reports then
 * know of; without a record nothing happens. HONE_ERROR_USAGE for other kinds, and for an end without a
 * beginning. */
HONE_API hone_status hone_context_stage_begin(hone_context *context, hone_span_kind kind, hone_error *error);
HONE_API hone_status hone_context_stage_end(hone_context *context, hone_error *error);

/* Adds the steps of a plan (a preview, usually) to the facts of another plan of the same model, so that what
 * it would gain can be predicted from what was measured: hone_forecast_make. HONE_ERROR_USAGE for NULL. */
HONE_API hone_status hone_plan_preview(const hone_plan *plan, hone_facts *facts, hone_error *error);

/* Writes what was recorded since hone_context_record into the facts (step and node tables included). */
HONE_API hone_status hone_context_record_end(hone_context *context, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
