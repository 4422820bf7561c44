/* What putting operators into one kernel brought others (fusions.def). */
#ifndef HN_INSIGHT_FUSIONS_H
#define HN_INSIGHT_FUSIONS_H

#include "insight/diagnose/rule.h"

typedef enum hn_fusion {
#define FUSION(name, saved, en, zh) HN_FUSION_##name,
#include "insight/diagnose/fusions.def"
#undef FUSION
} hn_fusion;

/* Adds it to the finding's evidence, with its source; returns the percent of the time that it saved. */
double hn_finding_quote(hn_diagnosis *d, hn_text label, hn_fusion fusion);

#endif
