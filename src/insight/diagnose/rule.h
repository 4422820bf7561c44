/* What a rule is, and what it has at hand. A rule reads the profile and adds findings; it never decides about
 * ranking, severity or whether a gain is worth mentioning: the engine does. */
#ifndef HN_INSIGHT_RULE_H
#define HN_INSIGHT_RULE_H

#include "base/arena.h"
#include "base/vec.h"

#include "insight/profile/bound.h"

#include <hone/insight.h>

struct hone_thresholds {
#define THRESHOLD(name, value, unit, source) double name;
#include "insight/diagnose/thresholds.def"
#undef THRESHOLD
};

/* One diagnosis under way. */
typedef struct hn_diagnosis {
  const hone_profile *p;
  const hone_facts *facts;
  const hone_thresholds *t;
  double typical_wall_ms; /* see hn_typical_wall_ms */
  const char *model;      /* for commands; never NULL */
  const char *rule;       /* name of the rule that runs */
  hn_arena *arena;
  bool failed; /* out of memory: sticky */
  HN_VEC(hone_finding) found;
  hone_finding current; /* between begin and end */
  hone_severity worst;  /* that the current finding may have; begin resets it to high */
  HN_VEC(hone_evidence) evidence;
  HN_VEC(const char *) commands;
  HN_VEC(const char *) nodes;
  HN_VEC(double) savings; /* of each node, see hn_finding_layer */
} hn_diagnosis;

struct hn_rule {
  const char *name;
  void (*run)(hn_diagnosis *d);
};

/* Building one finding: begin, then the parts in any order, then end. `what` tells several findings of a rule
 * apart (NULL: there is only one). Texts are copied into the arena. */
hone_finding *hn_finding_begin(hn_diagnosis *d, const char *what);
void hn_finding_evidence(hn_diagnosis *d, const char *name, double value, const char *unit,
                         const char *source);
void hn_finding_command(hn_diagnosis *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The ONNX nodes of a layer (or its name when it has none) join the finding. saving_ms says how the finding's
 * saving is to be divided among its layers (only the proportions count): its typical time, or 0 for one that
 * stays as it is. */
void hn_finding_layer(hn_diagnosis *d, const hone_layer *layer, double saving_ms);
/* P and S with the basis of S; predicted gain follows by Amdahl. */
void hn_finding_gain(hn_diagnosis *d, double p, double s, const char *basis, double confidence);
/* Drops the finding when its gain is under min_gain. */
void hn_finding_end(hn_diagnosis *d);

/* printf into the arena; "" when out of memory. */
const char *hn_say(hn_diagnosis *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- questions that several rules ask ---- */

/* Percent of the typical wall. */
double hn_share(const hn_diagnosis *d, double ms);
const hone_step_fact *hn_step(const hn_diagnosis *d, const hone_layer *layer); /* NULL: none */
bool hn_is_conv(const hone_layer *layer);              /* convolutions, depthwise and transposed ones too */
bool hn_is_matrix(const hone_layer *layer);            /* convolutions and matrix products */
bool hn_is_binary(const hone_layer *layer);            /* elementwise with two inputs that change */
bool hn_is_elementwise(const hone_layer *layer);       /* could ride along in another operator's epilogue */
bool hn_has_unknown_shape(const hone_step_fact *step); /* computed while the network runs */
bool hn_is_transpose(const hone_layer *layer);
bool hn_is_reformat(const hone_facts *facts, const hone_layer *layer);
/* Milliseconds that the layer would take at `percent` of its roofline, the overhead of a step included; its
 * typical time when no roof is known or it is faster already. */
double hn_roof_time(const hn_diagnosis *d, const hone_layer *layer, double percent);

#endif
