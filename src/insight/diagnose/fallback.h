/* Shared by the rules about steps that no fast tactic took. */
#ifndef HN_INSIGHT_FALLBACK_H
#define HN_INSIGHT_FALLBACK_H

#include "insight/diagnose/rule.h"

/* Why the fast tactics refused the layer, in their own words. */
const char *hn_fallback_cause(hn_diagnosis *d, const hone_layer *layer);

#endif
