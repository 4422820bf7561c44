/* insight: why is it slow, and what then? Facts in; profile, findings and reports out.
 *
 * Everything here only reads facts (hone/facts.h): nothing is run, nothing is measured, nothing is printed.
 * All strings read back are owned by the object they come from. Objects are immutable after creation unless a
 * function says otherwise, so any number of threads may read them.
 */
#ifndef HONE_INSIGHT_H
#define HONE_INSIGHT_H

#include <hone/facts.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- profile: facts -> tables ---- */

/* Order statistics of samples; quantiles (p25...) are linear interpolations between sorted samples. */
typedef struct hone_sample_stats {
  size_t count;
  double mean, min, max, p25, p50, p75, p95;
  double stddev; /* of the sample, n - 1 */
  /* Of a layer of which another tool gave only totals, what it did not say is NaN. */
  double cv; /* stddev / mean; 0 when there are fewer than two samples */
} hone_sample_stats;

/* What limits a step. */
#define HONE_LIMITS(X)                                                                                       \
  X(UNKNOWN, "unknown") /* no roof was measured, or neither FLOPs nor bytes are known */                     \
  X(COMPUTE, "compute")                                                                                      \
  X(MEMORY, "memory")                                                                                        \
  X(LATENCY, "latency") /* far below both roofs: waiting, overhead, too little work */

typedef enum hone_limit {
#define X(id, word) HONE_LIMIT_##id,
  HONE_LIMITS(X)
#undef X
} hone_limit;

/* Its word above. Static storage. */
HONE_API const char *hone_limit_name(hone_limit bound);

/* A row of the layer table: one step, summed over its spans of one iteration. Times in milliseconds. */
typedef struct hone_layer {
  const char *name, *type, *tactic;
  int32_t step;            /* index into the facts' step table, -1: an imported span without a step */
  hone_span_kind kind;     /* KERNEL, REFORMAT, ... */
  double time_ms;          /* mean exclusive wall time an iteration */
  double pct;              /* of the wall */
  double calls;            /* mean executions an iteration */
  hone_sample_stats stats; /* over iterations */
  const double
      *samples_ms;     /* stats.count of them in order of iteration; NULL: only the statistics are known */
  double flops, bytes; /* an iteration; 0: not known */
  double gflops, gbs;  /* achieved in the median iteration */
  /* What the tactic really computes (hone_step_fact.executed_flops): roofs and bounds go by these. */
  double executed_flops, executed_gflops;
  double intensity;         /* executed FLOP per byte; 0: not known */
  double compute_pct;       /* of the compute roof of its dtype; 0: not known */
  double memory_pct;        /* of the bandwidth roof of the level it fits into */
  double roof_pct;          /* the larger of the two: how close to the roofline */
  const char *memory_level; /* that level; NULL: no roof */
  hone_limit bound;         /* by utilisation */
  hone_limit ridge;         /* by intensity against the ridge point */
  double bound_confidence;  /* 0..1 */
  const char *const *onnx_nodes;
  size_t onnx_node_count;
  /* What hardware counters say of its step, in the order of the record (hone_facts_counters). Where they tell
   * how busy both the arithmetic and the memory were, these are compute_pct and memory_pct, and the bound is
   * theirs (by_counters); roof_pct stays that of the roofs, where there are any. */
  const hone_counter *counters;
  size_t counter_count;
  bool by_counters;
} hone_layer;

/* Share of one operator type. */
typedef struct hone_type_share {
  const char *type;
  double time_ms, pct, flops, bytes;
  size_t layers;
} hone_type_share;

/* Where one iteration's wall goes; means over the iterations, in milliseconds.
 * layers + reformats + copies + sync + host + pre + post + gaps + residual = wall. Gaps lie between time
 * stamps inside the run; the residual is what the outer clock saw before the first and after the last time
 * stamp. Neither is computed as "the rest", so a lost millisecond shows. */
typedef struct hone_closure {
  bool has_outer_clock; /* false: no outer wall was recorded, wall is first to last time stamp */
  double wall_ms;
  double layers_ms, reformats_ms, copies_ms, sync_ms, host_ms, pre_ms, post_ms;
  double gaps_ms;
  double residual_ms, residual_pct; /* signed */
  double longest_gap_ms;
  const char *longest_gap_before; /* name of the span after the longest gap; NULL: end of the run */
  double imbalance_ms;            /* |sum of the terms - wall|: 0 but for clock faults and lost spans */
  /* Of the iteration with the median share of gaps: the means above belong to disturbed iterations, too. */
  double typical_gaps_ms, typical_gaps_pct, typical_longest_gap_ms;
  const char *typical_longest_gap_before;
} hone_closure;

/* T_total = T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle, exclusive milliseconds an iteration. */
typedef struct hone_stages {
  double pre_ms, h2d_ms, infer_ms, d2h_ms, post_ms, idle_ms, total_ms;
} hone_stages;

/* Samples a second (batch included). Serial: the stages one after another. Overlapped: only the slowest stage
 * counts. */
typedef struct hone_throughput {
  double measured_fps, serial_fps, overlapped_fps;
  const char *slowest_stage;
} hone_throughput;

typedef struct hone_profile_options {
  const char *
      filter; /* operator type ("Conv") or glob over layer names; NULL: all. Shares stay those of the whole */
} hone_profile_options;

typedef struct hone_profile {
  const hone_facts *facts; /* borrowed: must outlive the profile */
  size_t iterations;       /* complete ones */
  hone_sample_stats wall;  /* outer clock where there is one, else first to last time stamp */
  const double *walls_ms;  /* the raw samples, `wall.count` of them */
  hone_closure closure;
  hone_stages stages;
  hone_throughput throughput;
  bool filtered;            /* layers holds only those that the filter names */
  const hone_layer *layers; /* in order of execution */
  size_t layer_count;
  const uint32_t *by_time;      /* indices of layers, slowest first */
  const hone_type_share *types; /* largest first */
  size_t type_count;
  /* NULL, or in what the record contradicts itself (time that no stamp saw, spans that cross, a missing step,
   * a speed beyond the machine's): then no figure of this profile should be trusted without a look. */
  const char *doubt;
  /* NULL, or what a reader must know of the layers' times: another tool gave only their totals. */
  const char *note;
  /* Compute roofs that a layer was faster than, with what the fastest reached: they are no peaks, so measure
   * them again (hone_facts_raise_roof, and a new profile). Memory is not among them: part of what a step
   * touches may come from a nearer level than all of it would. */
  const hone_roof *beaten;
  size_t beaten_count;
  double flops, bytes; /* one iteration, all steps */
  double macs;         /* multiply-accumulates of one iteration; 0: not known */
  double integer_macs; /* those that tactics do with integers of 8 bits */
  double gflops, gbs;  /* achieved by the whole */
  double ridge;        /* FLOP per byte where compute meets DRAM roof for the main dtype; 0: not known */
} hone_profile;

/* Sweeps the spans and builds the tables. HONE_ERROR_INPUT when there is no complete measured iteration. */
HONE_API hone_status hone_profile_create(const hone_facts *facts, const hone_profile_options *options,
                                         hone_profile **profile, hone_error *error);
HONE_API void hone_profile_destroy(hone_profile *profile);

/* Statistics of `count` samples in any order; all zero for none. Returns false when out of memory. */
HONE_API bool hone_stats_compute(const double *samples, size_t count, hone_sample_stats *stats);

/* ---- diagnose: profile -> findings ---- */

typedef enum hone_severity { HONE_SEVERITY_HIGH, HONE_SEVERITY_MEDIUM, HONE_SEVERITY_LOW } hone_severity;

/* Its word above. Static storage. */
HONE_API const char *hone_severity_name(hone_severity severity);

/* What a finding asks for, and so its rank: everything of one category stands before all of the next. */
#define HONE_CATEGORIES(X)                                                                                   \
  X(STRUCTURAL, "structural") /* the graph, the plan or the set-up changes */                                \
  X(MICRO, "micro")           /* single operators get faster */                                              \
  X(TRADE, "trade")           /* nothing is wrong: speed for accuracy, latency or generality */              \
  X(NOTE, "note")             /* about the measurement, not about the network */

typedef enum hone_category {
#define X(id, word) HONE_CATEGORY_##id,
  HONE_CATEGORIES(X)
#undef X
} hone_category;

/* Its word above. Static storage. */
HONE_API const char *hone_category_name(hone_category category);

/* Languages of titles, causes and labels. */
typedef enum hone_language { HONE_LANGUAGE_EN, HONE_LANGUAGE_ZH } hone_language;

/* "en", "zh". */
HONE_API const char *hone_language_name(hone_language language);
/* Of "zh", "zh_CN.UTF-8", "en"...: false when it is neither Chinese nor English (then *language is English).
 */
HONE_API bool hone_language_parse(const char *text, hone_language *language);

typedef struct hone_evidence {
  const char *name;  /* "idle share": the same in every language */
  const char *label; /* the name for readers */
  double value;
  const char *unit;   /* "%", "ms", "" */
  const char *source; /* where it was measured: "spans between time stamps" */
} hone_evidence;

/* What a finding is about, and so what is compared before and after to measure its gain. */
#define HONE_QUANTITIES(X)                                                                                   \
  X(NODES, "nodes") /* exclusive time of the ONNX nodes it names */                                          \
  X(WALL, "wall")                                                                                            \
  X(GAPS, "gaps")                                                                                            \
  X(REFORMATS, "reformats")                                                                                  \
  X(PRE, "pre")                                                                                              \
  X(POST, "post")                                                                                            \
  X(H2D, "h2d")                                                                                              \
  X(D2H, "d2h")                                                                                              \
  X(COPIES, "copies") /* to and from the device */                                                           \
  X(SYNC, "sync")

typedef enum hone_quantity {
#define X(id, word) HONE_QUANTITY_##id,
  HONE_QUANTITIES(X)
#undef X
} hone_quantity;

/* Its word above. Static storage. */
HONE_API const char *hone_quantity_name(hone_quantity quantity);

/* Who can remove it. */
#define HONE_REMEDIES(X)                                                                                     \
  X(OPTIMIZER, "optimizer") /* hone optimize does, without further choices */                                \
  X(SETTING, "setting")     /* another option of the run: threads, shape, precision */                       \
  X(USER, "user")           /* the model, its surroundings or the machine must change */

typedef enum hone_remedy {
#define X(id, word) HONE_REMEDY_##id,
  HONE_REMEDIES(X)
#undef X
} hone_remedy;

/* Its word above. Static storage. */
HONE_API const char *hone_remedy_name(hone_remedy remedy);

/* What a line of a finding's commands is for. */
#define HONE_PURPOSES(X)                                                                                     \
  X(REMEDY, "remedy") /* a command (or setting of a tool) that changes the time */                           \
  X(CODE, "code")     /* a change of the reader's own program that does */                                   \
  X(LOOK, "look")     /* a command that shows more, and changes nothing */                                   \
  X(PROBE, "probe")   /* the same as a change of the reader's own program */

typedef enum hone_purpose {
#define X(id, word) HONE_PURPOSE_##id,
  HONE_PURPOSES(X)
#undef X
} hone_purpose;

/* Its word above. Static storage. */
HONE_API const char *hone_purpose_name(hone_purpose purpose);

/* Where a speed-up comes from. */
#define HONE_BASES(X)                                                                                        \
  X(MEASURED, "measured") /* of times in this very profile, or of steps timed for it (hone_plan_rehearse) */ \
  X(ROOFLINE, "roofline") /* of what the machine's measured roofs allow */                                   \
  X(TABLE, "table")       /* of a table whose entries name source and device */                              \
  X(MODEL, "model")       /* of the tactics' cost models, scaled by what this very profile measured */

typedef enum hone_basis {
#define X(id, word) HONE_BASIS_##id,
  HONE_BASES(X)
#undef X
} hone_basis;

/* Its word above. Static storage. */
HONE_API const char *hone_basis_name(hone_basis basis);

/* A part of the time that a finding speaks of, by one cause. */
typedef struct hone_part {
  const char *name;  /* "conversions": the same in every language */
  const char *label; /* the name for readers */
  double ms;         /* of a typical run, in its layers */
  double saved_ms;   /* of that, what would go without the cause; NaN: the record does not tell */
  const char *why;
  const char *advice;        /* what to do about it, in words */
  const char *const *layers; /* the profile's, slowest first */
  size_t layer_count;
} hone_part;

typedef struct hone_finding {
  /* The rule's name, and after a colon the thing where a rule fires more than once: "outlier_operator:conv1".
   */
  const char *id;
  const char *title; /* one line */
  hone_severity severity;
  hone_category category;
  const char *subject; /* layer, operator type or "whole run" */
  const hone_evidence *evidence;
  size_t evidence_count;
  const char *cause;
  /* Its time by causes, where a rule tells several apart; most of what would go first. May be empty. */
  const hone_part *parts;
  size_t part_count;
  /* Exact commands to type, or settings of the tool whose profile this is. */
  const char *const *commands;
  const hone_purpose *purposes; /* of each of them */
  size_t command_count;
  const char *const *nodes; /* ONNX nodes (or layer names) it speaks of; may be empty */
  size_t node_count;
  const double *node_saved_pct; /* how predicted_saved_pct divides among the nodes */
  /* ONNX nodes (or layer names) on both sides of the gaps that it speaks of, which themselves stay as they
   * are.
   */
  const char *const *beside;
  size_t beside_count;
  hone_quantity quantity;
  hone_remedy remedy;
  double p;             /* share of the wall it concerns, 0..1 */
  double s;             /* expected speed-up of that share */
  double s_low, s_high; /* what it may turn out to be */
  hone_basis basis;
  const char *s_basis; /* the same in words: what was measured, which roof, whose table on which device */
  double predicted_gain_pct;          /* (1/((1-P)+P/S) - 1) * 100: end-to-end speed-up */
  double predicted_saved_pct;         /* P*(1-1/S) * 100: share of the wall that goes */
  double gain_low_pct, gain_high_pct; /* predicted_gain_pct for s_low and s_high */
  double confidence;                  /* 0..1 */
  /* Ids of findings that are consequences of this one; their evidence and commands stand here. */
  const char *const *merged;
  size_t merged_count;
  bool measured; /* the next two are set (hone_findings_measure) */
  double measured_gain_pct, measured_saved_pct;
} hone_finding;

/* Thresholds of the rules, all in src/insight/diagnose/thresholds.def. */
typedef struct hone_thresholds hone_thresholds;

typedef struct hone_findings {
  const hone_finding *items; /* by category, then by severity, then by predicted gain */
  size_t count;
  hone_language language;
} hone_findings;

/* One threshold: its name, default, unit and where the default comes from. */
typedef struct hone_threshold_info {
  const char *name;
  double value;
  const char *unit, *source;
} hone_threshold_info;

/* All of them; static. */
HONE_API const hone_threshold_info *hone_threshold_list(size_t *count);

/* A copy of the defaults to change; NULL when out of memory. */
HONE_API hone_thresholds *hone_thresholds_create(void);
HONE_API void hone_thresholds_destroy(hone_thresholds *thresholds);
/* Overrides one by name. HONE_ERROR_USAGE for an unknown name or a value that is not finite. */
HONE_API hone_status hone_thresholds_set(hone_thresholds *thresholds, const char *name, double value,
                                         hone_error *error);
/* The same for the text "name=value". */
HONE_API hone_status hone_thresholds_parse(hone_thresholds *thresholds, const char *text, hone_error *error);
/* Its value now; NaN for an unknown name. thresholds may be NULL (defaults). */
HONE_API double hone_thresholds_get(const hone_thresholds *thresholds, const char *name);

typedef struct hone_diagnose_options {
  const hone_thresholds *thresholds; /* NULL: defaults */
  hone_language language;
  /* The same network in float, to judge what quantisation brought; NULL: there is no such profile. */
  const hone_profile *float_profile;
} hone_diagnose_options;

/* Runs every rule. options may be NULL (defaults). "Nothing worth doing" is an empty list and HONE_OK. */
HONE_API hone_status hone_diagnose(const hone_profile *profile, const hone_diagnose_options *options,
                                   hone_findings **findings, hone_error *error);
HONE_API void hone_findings_destroy(hone_findings *findings);

/* Fills measured gains of the findings that hone optimize removes, where `after` is the optimised plan of the
 * model that `before` is of: for one that names nodes, what the steps that execute them saved (divided among
 * the findings that promised it, as they did); for one about the whole run, the walls. Nobody has followed
 * the other findings: they stay unmeasured. */
HONE_API hone_status hone_findings_measure(hone_findings *findings, const hone_profile *before,
                                           const hone_profile *after, hone_error *error);

/* Predicted end-to-end gain in percent of applying every finding with this remedy. Findings that speak of the
 * same nodes are not counted twice: each node is saved once, by the finding that saves most of it. 0 when
 * there are none, NaN when out of memory. */
HONE_API double hone_findings_predict(const hone_findings *findings, hone_remedy remedy);

/* What another plan of the model would take, from the preview steps in the facts (hone_plan_rehearse,
 * hone_plan_preview): what they were timed at on this machine; what was not, by its cost model, scaled by
 * what the same tactics took. */
typedef struct hone_forecast {
  int level;
  double before_ms, after_ms; /* typical run */
  double saved_pct;           /* of before */
  double gain_pct;            /* (before / after - 1) * 100 */
  double seen_pct;  /* share of the steps' time that was measured of these very steps and tactics: timed on
                       their own, or part of the profile. The rest is scaled cost models */
  double unsure_ms; /* 0; or the change is less than this, which can not be told: then it counts as none */
} hone_forecast;

/* False when the facts hold no preview, or the profile is filtered; gain_pct is NaN when there is no
 * memory. */
HONE_API bool hone_forecast_make(const hone_profile *profile, hone_forecast *forecast);

/* End-to-end speed-up by Amdahl: 1/((1-p)+p/s). p in 0..1, s > 0. */
HONE_API double hone_amdahl(double p, double s);

/* ---- report ---- */

typedef enum hone_report_format {
  HONE_REPORT_TEXT,           /* for a terminal */
  HONE_REPORT_JSON,           /* docs/guide/report.md */
  HONE_REPORT_CSV,            /* layer table, RFC 4180 */
  HONE_REPORT_TRACE,          /* Chrome trace events; opens in Perfetto */
  HONE_REPORT_HTML,           /* one self-contained page */
  HONE_REPORT_PROFILE_JSON,   /* facts v1 of the newest profile + derived tables: `profile --json` */
  HONE_REPORT_FINDINGS_JSON,  /* {"findings": [...]}: `diagnose --json` */
  HONE_REPORT_COMPARISON_JSON /* `compare --json`: docs/guide/compare.md */
} hone_report_format;

/* Parts of the text report; or them. */
enum {
  HONE_SECTION_SUMMARY = 1, /* model, machine, latency, throughput */
  HONE_SECTION_LAYERS = 2,  /* the layer table */
  HONE_SECTION_TOP5 = 4,
  HONE_SECTION_TYPES = 8,    /* share by operator type */
  HONE_SECTION_CLOSURE = 16, /* stages and the closure line */
  HONE_SECTION_FINDINGS = 32,
  HONE_SECTION_BEFORE_AFTER = 64,
  HONE_SECTION_COMPARISON = 128,
  HONE_SECTION_COUNTERS = 256, /* hardware counters, where there are any */
  HONE_SECTION_ALL = 511
};

/* Outcome of comparing the optimised with the reference answers. */
typedef struct hone_report_verdict {
  const char *verdict; /* "same", "different", "mistrusted" */
  int64_t inputs;      /* how many inputs were compared */
  double max_abs, max_rel;
  double tolerance;
  const char *first_different_node; /* NULL: none */
  const char *note;                 /* NULL: none */
} hone_report_verdict;

typedef struct hone_report_input {
  const char *title;             /* NULL: the model's name */
  const hone_profile *baseline;  /* the only profile, or the one before */
  const hone_profile *optimized; /* NULL: no before/after */
  const hone_findings *findings; /* NULL: none asked for */
  const hone_findings *left;     /* about `optimized`: what is left to do; NULL: not asked for */
  const hone_profile *today;     /* the same network as it runs today, by another tool; NULL: not given */
  const struct hone_comparison *comparison; /* of baseline and optimized (hone/compare.h); NULL: none */
  const hone_report_verdict *verification;  /* NULL: not verified */
  bool has_prediction; /* the next are set: predicted gain of everything that was applied */
  double predicted_gain_pct;
  double predicted_after_ms;    /* of a typical run; 0: only the gain was predicted */
  double predicted_unsure_ms;   /* the predicted change is less than this, which says nothing; 0: it is not */
  const char *prediction_made;  /* ISO 8601, UTC, before the change was made; NULL: not recorded */
  const char *prediction_basis; /* where it comes from; NULL: the sum of the findings */
  /* text only */
  unsigned sections; /* 0: all */
  int width;         /* columns; 0: 100 */
  bool colors;       /* ANSI escapes */
  bool unicode;      /* box characters, bars and the like; false: ASCII */
  size_t max_layers; /* rows of the layer table; 0: all */
  /* Of headings and labels, also of pages; with findings theirs counts. Numbers, names, and words of the
   * schemas are the same in all. */
  hone_language language;
} hone_report_input;

/* Receives a piece of the report; any status but HONE_OK stops the writer, which returns it. */
typedef hone_status (*hone_sink)(void *user, const char *data, size_t length, hone_error *error);

/* Writes one report. The output is complete only when HONE_OK comes back. */
HONE_API hone_status hone_report_write(const hone_report_input *input, hone_report_format format,
                                       hone_sink sink, void *user, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
