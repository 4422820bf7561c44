/* facts v1: the neutral record of a run, and the only door into insight (profile, findings, reports).
 *
 * A hone_facts is a log of spans plus the static tables that explain them: steps, ONNX nodes, refused
 * tactics, near misses of passes, measured roofs, memory samples, the outer clock's wall time of each
 * iteration, and the quality of the sampling. hone's own runtime and every importer of foreign profiles fill
 * the same object.
 *
 * Conventions
 * - All times are nanoseconds of one monotonic clock; only differences carry meaning. Wall times are measured
 * by an independent outer clock (see hone_facts_add_wall).
 * - Strings are UTF-8. Every string handed in is copied and interned; every string read back is owned by the
 * facts and lives until hone_facts_destroy. NULL goes in as "not known" and comes back as NULL.
 * - Tables are append only; indices are stable. Pointers to table rows are valid until the next add to that
 * table.
 * - The add functions report running out of memory once, at the end: after a failure they do nothing, and
 *   hone_facts_check says what happened. So a builder needs one error check, not a hundred.
 * - A hone_facts is not thread safe while it is built; when nobody adds any more, any number of threads may
 * read it. */
#ifndef HONE_FACTS_H
#define HONE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_FACTS_VERSION 1

typedef struct hone_facts hone_facts;

/* ---- spans ---- */

/* What a span's time is spent on: name in the code, word in JSON. */
#define HONE_SPAN_KINDS(X)                                                                                   \
  X(RUN,                                                                                                     \
    "run") /* container: one iteration of inference, opened before the first step, closed after the last */  \
  X(KERNEL, "kernel")     /* an operator's computation */                                                    \
  X(REFORMAT, "reformat") /* a change of layout or dtype that no ONNX node asked for */                      \
  X(COPY, "copy")         /* moving bytes within one memory */                                               \
  X(COPY_H2D, "copy_h2d") /* host to device */                                                               \
  X(COPY_D2H, "copy_d2h") /* device to host */                                                               \
  X(SYNC, "sync")         /* waiting for a device, a stream or another thread */                             \
  X(HOST, "host")         /* host work of the runtime: shape computation, control flow, launches */          \
  X(PRE, "pre")           /* pre-processing: decode, resize, normalise, generate inputs */                   \
  X(POST, "post")         /* post-processing: top-k, decode, NMS, write outputs */                           \
  X(IDLE, "idle")         /* known to be idle (throttled, sleeping on purpose) */

typedef enum hone_span_kind {
#define X(id, word) HONE_SPAN_##id,
  HONE_SPAN_KINDS(X)
#undef X
      HONE_SPAN_KIND_COUNT
} hone_span_kind;

/* The word that stands for a kind in JSON; "?" for a number that is none. */
HONE_API const char *hone_span_kind_name(hone_span_kind kind);

/* One interval on one lane. Spans on the same lane may nest; time belongs to the innermost one. */
typedef struct hone_span {
  uint32_t id;     /* 1, 2, ...; assigned by the facts */
  uint32_t parent; /* id of the enclosing span, 0: none */
  int64_t start_ns, end_ns;
  hone_span_kind kind;
  int32_t lane;      /* thread, stream or queue */
  int32_t iteration; /* 0, 1, ... of the measured runs; -1: outside them (load, warm-up, tuning) */
  int32_t step;      /* index into the step table, -1: none */
  /* The rest is optional: NULL or 0 mean "as the step says". */
  const char *name;
  const char *op_type;
  const char *tactic;
  uint64_t bytes; /* read + written */
  uint64_t flops;
  /* What foreign tools know of device work; 0: not known. */
  uint32_t correlation; /* the same number on the host's call and on the device's work that it started */
  uint32_t launch;      /* id (1, 2, ...) of a row of the launch table */
  uint8_t source_memory, target_memory; /* hone_memory_kind, of a copy */
} hone_span;

/* Where the bytes of a copy lie: name in the code, word in JSON. */
#define HONE_MEMORY_KINDS(X)                                                                                 \
  X(UNKNOWN, "unknown")                                                                                      \
  X(PAGEABLE, "pageable") /* of the host, not locked: the driver copies it twice and the caller waits */     \
  X(PINNED, "pinned")     /* of the host, locked */                                                          \
  X(DEVICE, "device")                                                                                        \
  X(MANAGED, "managed") /* unified: moves on demand */

typedef enum hone_memory_kind {
#define X(id, word) HONE_MEMORY_##id,
  HONE_MEMORY_KINDS(X)
#undef X
      HONE_MEMORY_KIND_COUNT
} hone_memory_kind;

/* The word that stands for it in JSON; "?" for a number that is none. */
HONE_API const char *hone_memory_kind_name(hone_memory_kind kind);

/* ---- the buffer in which a running context keeps its spans ---- */

/* One record, written in the steady state: no allocation, no lock, no strings to copy. */
typedef struct hone_span_record {
  int64_t start_ns, end_ns;
  /* Must outlive the conversion (static text or the plan's strings); NULL: the step's name. */
  const char *name;
  uint64_t bytes; /* 0: as the step says */
  int32_t step, iteration;
  int16_t lane;
  uint8_t kind; /* hone_span_kind */
} hone_span_record;

/* A preallocated buffer; one writer. When it is full the newest records are dropped and counted: a run whose
 * RUN span (pushed last) did not fit is left out of the profile as a whole, so what is reported is complete.
 */
typedef struct hone_span_buffer {
  hone_span_record *records;
  size_t capacity, count;
  uint64_t dropped;
} hone_span_buffer;

/* Allocates room for `capacity` records. HONE_ERROR_MEMORY when there is none. */
HONE_API hone_status hone_span_buffer_init(hone_span_buffer *buffer, size_t capacity, hone_error *error);
HONE_API void hone_span_buffer_free(hone_span_buffer *buffer);

static inline void hone_span_push(hone_span_buffer *buffer, hone_span_kind kind, int lane, int iteration,
                                  int step, int64_t start_ns, int64_t end_ns, uint64_t bytes,
                                  const char *name) {
  if (buffer->count >= buffer->capacity) {
    buffer->dropped++;
    return;
  }
  hone_span_record *r = &buffer->records[buffer->count++];
  r->start_ns = start_ns;
  r->end_ns = end_ns;
  r->name = name;
  r->bytes = bytes;
  r->step = (int32_t)step;
  r->iteration = (int32_t)iteration;
  r->lane = (int16_t)lane;
  r->kind = (uint8_t)kind;
}

/* ---- metadata ---- */

/* Texts may be NULL. */
typedef struct hone_facts_meta {
  const char *tool; /* who recorded: "hone", "trtexec", ... */
  const char *tool_version;
  const char *hone_version; /* of the hone that recorded it, with its own revision: "0.1.0 (1b3d42d2c7ab)" */
  const char *commit;       /* revision of the user's repository */
  const char *model;        /* file name or network name */
  const char *model_hash;
  const char *device;  /* "AMD EPYC 9654", "NVIDIA H200" */
  const char *backend; /* "cpu", "cuda" */
  const char *isa;     /* "avx512vnni" */
  const char *os;
  const char *compiler;
  const char *precision;   /* "f32", "bf16", "int8", "mixed" */
  const char *date;        /* ISO 8601, UTC */
  const char *flags;       /* the command line or options that matter */
  const char *outer_clock; /* which clock measured the walls */
  const char *inner_clock; /* which clock stamped the spans */
  double batch;
  double threads;           /* worker threads used */
  double cores;             /* hardware threads this process may use */
  double opt_level;         /* 0-3; -1: not known */
  double seed;              /* of the generated inputs */
  double warmups;           /* runs thrown away */
  double runs;              /* measured runs asked for */
  double interrupted;       /* 1: stopped early (Ctrl-C, budget), the runs that finished are kept */
  double timer_overhead_ns; /* cost of one time stamp */
  double dropped_spans;     /* did not fit into the buffer */
  double load_ms;           /* file to ready session */
  double streams;           /* independent queues used */
  double dynamic_shapes;    /* 1: some dimension was symbolic */
} hone_facts_meta;

/* ---- tables ---- */

/* A tactic that could have run a step and does not. */
typedef struct hone_alternative {
  const char *tactic;
  const char *reason; /* why it was refused, or why it lost */
  double time_ms;     /* measured candidate time; negative: not measured */
} hone_alternative;

/* One executed step of the plan. A span points to it by index. */
typedef struct hone_step_fact {
  const char *name;                 /* unique within the plan, usually the anchor node's name */
  const char *op_type;              /* of the anchor: "Conv", "Gemm", "Reformat", ... */
  const char *tactic;               /* "conv_nhwc_avx512", "ref", ... */
  const char *epilogue;             /* "bias+add+relu" */
  const char *dtype;                /* of the computation: "f32", "bf16", "i8" */
  const char *shape_in, *shape_out; /* "1x3x224x224"; several separated by a space */
  /* What the codes of operands and results mean: "u8[1x64x56x56] scale 0.05 zero 114", in order, "; " between
   * two; NULL: there are none, or nobody says it. */
  const char *codes_in, *codes_out;
  const char *layout; /* "nhwc" */
  uint64_t flops;     /* of one execution, by the operator's formula */
  /* What the tactic really computes in one execution: fewer (Winograd) or more (f32 as products of narrower
   * parts). 0: as many as flops. Roofs and bounds go by it. */
  uint64_t executed_flops;
  uint64_t macs;          /* multiply-accumulates of one execution, by the operator's formula */
  const char *arithmetic; /* the units that do it, a roof's name: "bf16"; "unknown"; NULL: dtype says it */
  uint64_t bytes;         /* read + written by one execution, weights included */
  uint64_t weight_bytes;
  double predicted_ms; /* one execution, by the tactic's cost model; 0: not known */
  bool is_reference;   /* runs the scalar reference tactic */
  bool is_reformat;    /* exists only to change layout or dtype */
  bool on_host;        /* of an accelerator's run: this step ran on the host */
  bool is_launch;      /* its spans are the time to launch it on the host, not the device's time */
  int32_t channels_in, channels_out; /* of a convolution or matrix product; 0: does not apply */
  int32_t anchor_node;               /* index into the node table, -1: none */
  const int32_t *nodes;              /* every ONNX node this step executes, the anchor included */
  size_t node_count;
  const hone_alternative *alternatives;
  size_t alternative_count;
} hone_step_fact;

/* What became of an ONNX node: name in the code, word in JSON. */
#define HONE_NODE_FATES(X)                                                                                   \
  X(EXECUTED, "executed") /* anchor of a step */                                                             \
  X(FUSED, "fused")       /* executed inside another node's step */                                          \
  X(VIEW, "view")         /* became a view of memory: nothing to execute */                                  \
  X(FOLDED, "folded")     /* computed before the run */                                                      \
  X(DEAD, "dead")         /* no output depends on it */                                                      \
  X(REPLACED, "replaced") /* rewritten by a pass into something without a one-to-one step */                 \
  X(UNKNOWN, "unknown")

typedef enum hone_node_fate {
#define X(id, word) HONE_NODE_##id,
  HONE_NODE_FATES(X)
#undef X
      HONE_NODE_FATE_COUNT
} hone_node_fate;

/* Its word above. Static storage. */
HONE_API const char *hone_node_fate_name(hone_node_fate fate);

/* A node of the model as it was loaded. Unnamed nodes should be named "<op_type>_<index>" by the writer. */
typedef struct hone_node_fact {
  const char *name;
  const char *op_type;
  hone_node_fate fate;
  int32_t step;       /* executed by; -1: by none */
  const char *reason; /* why it vanished: the pass and its words */
} hone_node_fact;

/* A pass that ran over the graph. */
typedef struct hone_pass_fact {
  const char *name;
  int32_t level; /* optimisation level it belongs to */
  uint64_t hits;
  double time_ms;
} hone_pass_fact;

/* A pattern that almost matched, or that matches but is not applied at this level. */
typedef struct hone_near_miss {
  const char *pass;
  const char *reason;
  const int32_t *nodes; /* the nodes of the pattern, indices into the node table */
  size_t node_count;
  uint64_t bytes_saved; /* memory traffic that the rewrite would save; 0: not known */
  int32_t enable_level; /* level that would apply it; -1: no level does */
} hone_near_miss;

/* A step of a plan that was not built: what another optimisation level would execute. Lets a change be
 * predicted before it is made. */
typedef struct hone_preview_step {
  int32_t level;    /* of that plan */
  const char *name; /* of the step */
  const char *op_type, *tactic;
  const char *epilogue; /* as of hone_step_fact */
  double predicted_ms;  /* one execution, by the tactic's cost model */
  double timed_ms;  /* one execution, timed on its own on this machine (hone_plan_rehearse); 0: it was not */
  double scaled_ms; /* where it was not: predicted_ms, as much faster or slower as its kernel is on this
                       machine; 0: nothing is known of that */
  int32_t anchor_node;  /* index into the node table, -1: none */
  const int32_t *nodes; /* every ONNX node it would execute */
  size_t node_count;
} hone_preview_step;

/* A measured ceiling of this machine. Exactly one of gflops and gbs is set. */
typedef struct hone_roof {
  const char *name; /* dtype for compute ("f32"), level for memory ("L1", "L2", "L3", "DRAM") */
  int32_t threads;
  double gflops;
  double gbs;
  uint64_t capacity_bytes; /* of a memory level; 0: not known, or no limit (DRAM) */
} hone_roof;

typedef struct hone_memory_sample {
  int64_t time_ns;
  uint64_t planned_bytes;                        /* live by the plan at that moment */
  uint64_t rss_bytes;                            /* resident by the system; 0: not read */
  uint64_t pool_used_bytes, pool_reserved_bytes; /* of the device's pool (hone/memory.h); 0: not read */
} hone_memory_sample;

/* A pool of the engine's memory, or what one model holds of it, at the end of the runs. */
typedef struct hone_memory_pool_fact {
  const char *pool;  /* "host", "cuda:0", "pinned" */
  const char *owner; /* the model; NULL: all of them */
  uint64_t used, reserved, high_water;
  double fragmentation;     /* of all: of what is free; of one: inside of its blocks */
  uint64_t taken, reclaims; /* of all: calls to the system for memory, and how often some was given back */
} hone_memory_pool_fact;

/* Bytes. 0: not known. */
typedef struct hone_memory_facts {
  uint64_t predicted_peak; /* activations, from the memory plan */
  uint64_t actual_peak;    /* activations, as used */
  uint64_t naive_sum;      /* all activations without reuse */
  uint64_t weights;
  uint64_t rss_peak;    /* of the host's process */
  uint64_t device_peak; /* of an accelerator's memory: taken for weights, activations and workspace at most */
} hone_memory_facts;

/* One wall time by the outer clock. */
typedef struct hone_wall {
  int32_t iteration;
  int64_t wall_ns;
} hone_wall;

/* A counter or sensor value, for one step or (step -1) for the whole run. */
typedef struct hone_counter {
  const char *name; /* "cycles", "instructions", "llc_misses", "temperature_c_min", ... */
  const char *unit;
  int32_t step;
  double value;
} hone_counter;

/* How a kernel was launched on a device. Many spans share a row. 0: not known. */
typedef struct hone_launch {
  uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  uint32_t registers;                     /* of one thread */
  uint64_t static_shared, dynamic_shared; /* bytes of a block */
  double occupancy_pct;                   /* of the warps that fit; estimated or measured by the tool */
} hone_launch;

/* What a tool reports of a step when it does not say when each execution took place. A step with a row here
 * has no spans of its own: its row of the layer table comes from here. Times of one execution, in
 * milliseconds; 0: not known. */
typedef struct hone_step_stats {
  int32_t step;
  hone_span_kind kind; /* what the time is spent on; RUN (0): as the step says, KERNEL or REFORMAT */
  uint64_t count;      /* executions that the total covers */
  uint64_t runs;       /* runs of the network that it covers, 1 at least */
  double total_ms;
  double median_ms, min_ms, max_ms;
} hone_step_stats;

/* One of many runs that took much longer than they usually do, with what was seen of it. */
typedef struct hone_slow_run {
  double time_s; /* since the measurement began */
  double wall_ms, usual_ms;
  /* Where it lost most of that: in a step, or in the pause before one. Both NULL: nowhere in particular, or
   * not recorded. */
  const char *step, *pause_before;
  double part_ms, part_usual_ms; /* of that step or pause */
  uint32_t involuntary_switches, minor_faults, major_faults;
  /* Of the stretch of time around it; NaN: not known. */
  double clock_mhz, usual_clock_mhz, others_pct, throttles;
} hone_slow_run;

/* Something a reader would look for that could not be measured here, and why; or a version of a library in
 * use. */
typedef struct hone_note {
  const char *what;
  const char *text;
} hone_note;

/* A named lane: thread, stream or queue. */
typedef struct hone_lane {
  int32_t lane;
  const char *name;
} hone_lane;

/* ---- building ---- */

/* An empty record; NULL when out of memory. Owned by the caller. */
HONE_API hone_facts *hone_facts_create(void);
HONE_API void hone_facts_destroy(hone_facts *facts); /* NULL is fine */

HONE_API void hone_facts_set_meta(hone_facts *facts, const hone_facts_meta *meta);
HONE_API void hone_facts_set_memory(hone_facts *facts, const hone_memory_facts *memory);

/* These return the new row's index (for spans: its id), or -1 (0) after running out of memory. Rows are
 * copied deeply. id is ignored on input. Add steps and nodes before the spans that name them only if
 * convenient: indices are checked by hone_facts_check, not here. */
HONE_API uint32_t hone_facts_add_span(hone_facts *facts, const hone_span *span);
HONE_API int32_t hone_facts_add_step(hone_facts *facts, const hone_step_fact *step);
HONE_API int32_t hone_facts_add_node(hone_facts *facts, const hone_node_fact *node);
HONE_API void hone_facts_add_pass(hone_facts *facts, const hone_pass_fact *pass);
HONE_API void hone_facts_add_near_miss(hone_facts *facts, const hone_near_miss *miss);
HONE_API void hone_facts_add_preview_step(hone_facts *facts, const hone_preview_step *step);
HONE_API void hone_facts_add_roof(hone_facts *facts, const hone_roof *roof);
/* The run was faster than a roof, or that was measured again: of the same name and threads the larger figure
 * stays; where there is none, as add. */
HONE_API void hone_facts_raise_roof(hone_facts *facts, const hone_roof *roof);
HONE_API void hone_facts_add_memory_sample(hone_facts *facts, const hone_memory_sample *sample);
HONE_API void hone_facts_add_memory_pool(hone_facts *facts, const hone_memory_pool_fact *pool);
HONE_API void hone_facts_add_counter(hone_facts *facts, const hone_counter *counter);
/* Returns the row's id (1, 2, ...) for hone_span.launch; 0 after running out of memory. */
HONE_API uint32_t hone_facts_add_launch(hone_facts *facts, const hone_launch *launch);
HONE_API void hone_facts_add_step_stats(hone_facts *facts, const hone_step_stats *stats);
HONE_API void hone_facts_name_lane(hone_facts *facts, int32_t lane, const char *name);

/* The outer wall time of one iteration. It must come from another clock (and other time stamps) than the
 * spans: taken by the caller around the whole call, so that time which no span sees shows as residual instead
 * of vanishing. */
HONE_API void hone_facts_add_wall(hone_facts *facts, int32_t iteration, int64_t wall_ns);

HONE_API void hone_facts_add_version(hone_facts *facts, const char *what, const char *version);
HONE_API void hone_facts_add_unmeasured(hone_facts *facts, const char *what, const char *why);
/* One run of many that took much longer than the others. */
HONE_API void hone_facts_add_slow_run(hone_facts *facts, const hone_slow_run *run);
/* An option of hone's command line that decides what was run ("shape", "x=1x3x64x64"; a flag has no value):
 * commands that findings suggest repeat it, so that they speak of the same case. */
HONE_API void hone_facts_add_option(hone_facts *facts, const char *name, const char *value);

/* Appends a context's spans. Every span becomes a child of the RUN span of its iteration and lane group;
 * drops are added to the metadata. */
HONE_API void hone_facts_add_buffer(hone_facts *facts, const hone_span_buffer *buffer);

/* HONE_OK when nothing was lost and every index points into its table; otherwise says what is wrong. */
HONE_API hone_status hone_facts_check(const hone_facts *facts, hone_error *error);

/* ---- reading: borrowed views ---- */

HONE_API const hone_facts_meta *hone_facts_get_meta(const hone_facts *facts);
HONE_API const hone_memory_facts *hone_facts_get_memory(const hone_facts *facts);
HONE_API const hone_span *hone_facts_spans(const hone_facts *facts, size_t *count);
HONE_API const hone_step_fact *hone_facts_steps(const hone_facts *facts, size_t *count);
HONE_API const hone_node_fact *hone_facts_nodes(const hone_facts *facts, size_t *count);
HONE_API const hone_pass_fact *hone_facts_passes(const hone_facts *facts, size_t *count);
HONE_API const hone_near_miss *hone_facts_near_misses(const hone_facts *facts, size_t *count);
HONE_API const hone_preview_step *hone_facts_preview_steps(const hone_facts *facts, size_t *count);
HONE_API const hone_roof *hone_facts_roofs(const hone_facts *facts, size_t *count);
HONE_API const hone_memory_sample *hone_facts_memory_samples(const hone_facts *facts, size_t *count);
HONE_API const hone_memory_pool_fact *hone_facts_memory_pools(const hone_facts *facts, size_t *count);
HONE_API const hone_counter *hone_facts_counters(const hone_facts *facts, size_t *count);
HONE_API const hone_launch *hone_facts_launches(const hone_facts *facts, size_t *count);
HONE_API const hone_step_stats *hone_facts_step_stats(const hone_facts *facts, size_t *count);
HONE_API const hone_wall *hone_facts_walls(const hone_facts *facts, size_t *count);
HONE_API const hone_note *hone_facts_versions(const hone_facts *facts, size_t *count);
HONE_API const hone_note *hone_facts_unmeasured(const hone_facts *facts, size_t *count);
HONE_API const hone_slow_run *hone_facts_slow_runs(const hone_facts *facts, size_t *count); /* worst first */
HONE_API const hone_note *hone_facts_options(const hone_facts *facts, size_t *count);       /* in order */
HONE_API const hone_lane *hone_facts_lanes(const hone_facts *facts, size_t *count);
HONE_API const char *hone_facts_lane_name(const hone_facts *facts, int32_t lane); /* NULL: not named */

/* ---- JSON ---- */

/* The whole record as text (docs/reference/facts-v1.md). *text is NUL-terminated; free() it. */
HONE_API hone_status hone_facts_to_json(const hone_facts *facts, char **text, size_t *length,
                                        hone_error *error);

/* Reads what hone_facts_to_json wrote. Unknown fields are ignored; a newer major version, a wrong type, an
 * index that points nowhere or text that is no JSON is one error with its place. The caller owns *facts. */
HONE_API hone_status hone_facts_from_json(const char *text, size_t length, hone_facts **facts,
                                          hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
