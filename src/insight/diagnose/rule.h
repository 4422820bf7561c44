/* What a rule is, and what it has at hand. A rule reads the profile and adds findings; it never decides about
 * ranking, severity, merging or whether a gain is worth mentioning: the engine does.
 *
 * A rule states only what the facts can show. Profiles of other tools may have no roofs, no timeline, no
 * copies, no bytes: ask before claiming (hn_has_timeline, hn_roof_time, ...). */
#ifndef HN_INSIGHT_RULE_H
#define HN_INSIGHT_RULE_H

#include "base/arena.h"
#include "base/registry.h"
#include "base/vec.h"

#include "insight/diagnose/actions.h"
#include "insight/profile/bound.h"

#include <hone/insight.h>

struct hone_thresholds {
#define THRESHOLD(name, value, unit, source) double name;
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

const struct hone_thresholds *hn_thresholds_default(void);

/* A text in every language. Both stand side by side where they are used, so neither can be forgotten and the
 * compiler checks both against the same arguments. */
typedef struct hn_text {
  const char *en, *zh;
} hn_text;

#define HN_T(en, zh) ((hn_text){(en), (zh)})

/* Where evidence was measured; the usual places. */
#define HN_SOURCE_SPANS HN_T("exclusive wall time of the spans", "各时段的独占墙钟时间")
#define HN_SOURCE_ROOFS HN_T("measured roofs of this machine", "本机实测的性能上限")
#define HN_SOURCE_SHAPES HN_T("shapes of the steps, read + written", "各步骤的形状，读与写之和")
#define HN_SOURCE_LAYERS HN_T("layer table", "层表")
#define HN_SOURCE_STEPS HN_T("step table", "步骤表")
#define HN_SOURCE_RECORD HN_T("the record's own description", "记录自带的说明")

/* One diagnosis under way. */
typedef struct hn_diagnosis {
  const hone_profile *p;
  const hone_facts *facts;
  const hone_thresholds *t;
  const hone_profile *float_profile; /* NULL: none */
  hone_language language;
  double typical_wall_ms; /* see hn_typical_wall_ms; of a window (hn_is_window) what was computed in it */
  const char *model;      /* for commands, a word of the shell; never NULL */
  hn_tool tool;           /* whose profile this is */
  const char *rule;       /* name of the rule that runs */
  hn_arena *arena;
  bool failed; /* out of memory: sticky */
  HN_VEC(hone_finding) found;
  hone_finding current; /* between begin and end */
  hone_severity worst;  /* that the current finding may have; begin resets it to high */
  HN_VEC(hone_evidence) evidence;
  HN_VEC(const char *) commands;
  HN_VEC(hone_purpose) purposes; /* of the commands */
  HN_VEC(const char *) nodes;
  HN_VEC(double) savings; /* of each node, see hn_finding_layer */
  HN_VEC(const char *) beside;
  HN_VEC(hone_part) parts;
} hn_diagnosis;

struct hn_rule {
  const char *name;
  void (*run)(hn_diagnosis *d);
};
/* Of struct hn_rule, by name, in the order in which they run. Begins with rules.def. */
extern hn_registry hn_rules;

/* Building one finding: begin, then the parts in any order, then end. `what` tells several findings of a rule
 * apart (NULL: there is only one). Texts are copied into the arena. */
hone_finding *hn_finding_begin(hn_diagnosis *d, const char *what);
void hn_finding_evidence(hn_diagnosis *d, hn_text name, double value, const char *unit, hn_text source);
/* The same, with a source that is a name of the profile (a layer). */
void hn_finding_evidence_at(hn_diagnosis *d, hn_text name, double value, const char *unit, const char *where);
/* What to do, in the words of the tool whose profile this is: actions.def. Where it has none for that tool,
 * nothing. layer: for {layer}; may be NULL. n: for {n}. */
void hn_finding_do(hn_diagnosis *d, hn_action action, const char *layer, double n);
/* The ONNX nodes of a layer (or its name when it has none) join the finding. saving_ms says how the finding's
 * saving is to be divided among its layers (only the proportions count): its typical time, or 0 for one that
 * stays as it is. */
void hn_finding_layer(hn_diagnosis *d, const hone_layer *layer, double saving_ms);
/* The same for a layer that is only next to what the finding speaks of: it shows where, and saves nothing. */
void hn_finding_beside(hn_diagnosis *d, const hone_layer *layer);
/* A part of its time; texts and layers must live as long as the diagnosis or be the arena's. */
void hn_finding_part(hn_diagnosis *d, const hone_part *part);
/* P and S with the basis of S; predicted gain follows by Amdahl. Its range: the basis' usual error
 * (thresholds range_*), until hn_finding_range says more. */
void hn_finding_gain(hn_diagnosis *d, double p, double s, hone_basis basis, const char *words,
                     double confidence);
void hn_finding_range(hn_diagnosis *d, double s_low, double s_high);
/* Drops the finding when its gain is under min_gain (notes have none and stay). */
void hn_finding_end(hn_diagnosis *d);

/* printf into the arena; "" when out of memory. */
const char *hn_say(hn_diagnosis *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text without arguments, and one with, in the diagnosis' language. Formats take the same arguments in the
 * same order. */
#define HN_WORDS(d, en, zh) ((d)->language == HONE_LANGUAGE_ZH ? (zh) : (en))
#define HN_SAY(d, en, zh, ...) hn_say((d), HN_WORDS(d, en, zh), __VA_ARGS__)
/* The plural's "s", for "%zu operator%s" and "%zu 个算子%s". */
#define HN_S(d, n) HN_WORDS(d, (n) == 1 ? "" : "s", "")
/* "gemv" of "void internal::gemv<int, (Kind)2>(Params)": what profilers of kernels match by default. */
const char *hn_function_of(hn_diagnosis *d, const char *name);
/* As a word of the shell: quoted when it holds anything that a shell may take for more. */
const char *hn_shell_word(hn_diagnosis *d, const char *text);

/* Findings that others explain disappear into these (merges.def). */
void hn_findings_merge(hn_diagnosis *d);

/* ---- questions that several rules ask ---- */

/* Percent of the typical wall. */
double hn_share(const hn_diagnosis *d, double ms);
const hone_step_fact *hn_step(const hn_diagnosis *d, const hone_layer *layer); /* NULL: none */
bool hn_is_conv(const hone_layer *layer);              /* convolutions, depthwise and transposed ones too */
bool hn_is_matrix(const hone_layer *layer);            /* convolutions and matrix products */
bool hn_is_binary(const hone_layer *layer);            /* elementwise with two inputs that change */
bool hn_is_elementwise(const hone_layer *layer);       /* could ride along in another operator's epilogue */
bool hn_is_quantise(const hone_layer *layer);          /* QuantizeLinear, DequantizeLinear and the like */
bool hn_has_unknown_shape(const hone_step_fact *step); /* computed while the network runs */
bool hn_is_transpose(const hone_layer *layer);
bool hn_is_reformat(const hone_facts *facts, const hone_layer *layer);
/* Streams a tensor with hardly any arithmetic, at no less than 60 % of what the memory gives: memory is its
 * limit even where a cache would be large enough. That cache is shared with other processors, and with the
 * rest of the network. */
bool hn_streams_memory(const hn_diagnosis *d, const hone_layer *layer);
/* How many times its cost model's time the layer takes in its fastest run, when nothing disturbs it; 0: not
 * known. And what is usual in this profile (for its products alone), the median; 0: too few have a cost
 * model. */
double hn_over_model(const hn_diagnosis *d, const hone_layer *layer);
double hn_usual_over_model(hn_diagnosis *d, bool products);
bool hn_is_copy(const hone_layer *layer); /* between memories, or within one */
/* Between devices or processes: a collective of NCCL, HCCL, Gloo, MPI. */
bool hn_is_communication(const hone_layer *layer);
/* An operator's own work: no copy, no waiting, no stage around the network. */
bool hn_is_work(const hone_layer *layer);
/* Its numbers are integers of 8 bits or less. */
bool hn_is_int8(const hn_diagnosis *d, const hone_layer *layer);
/* The network ran on something that is not the host's processor. */
bool hn_on_accelerator(const hn_diagnosis *d);
/* Spans with time stamps: without them nothing can be said about gaps, copies, overlap or waiting. */
bool hn_has_timeline(const hn_diagnosis *d);
/* Independent queues that the device worked on; 0: not known. */
double hn_streams(const hn_diagnosis *d);
/* The record is a window of a program's life rather than runs of a network (hn_profile_is_window). Set-up,
 * other work and pauses cannot be told apart then: only shares of what was computed say something. */
bool hn_is_window(const hn_diagnosis *d);
/* A counter of one step, or with step -1 of the whole run; false when there is none of that name. */
bool hn_counter(const hn_diagnosis *d, const char *name, int32_t step, double *value);
/* Milliseconds that the layer would take at `percent` of its roofline, the overhead of a step included; its
 * typical time when no roof is known or it is faster already. */
double hn_roof_time(const hn_diagnosis *d, const hone_layer *layer, double percent);
/* Roofs were measured for what this layer does. */
bool hn_roof_known(const hn_diagnosis *d, const hone_layer *layer);

#endif
