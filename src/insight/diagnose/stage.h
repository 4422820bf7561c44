/* Shared by the rules about stages around the inference: pre-processing, post-processing, copies to and from
 * the device. */
#ifndef HN_INSIGHT_STAGE_H
#define HN_INSIGHT_STAGE_H

#include "insight/diagnose/rule.h"

typedef struct hn_stage {
  double ms;
  double limit_pct; /* of the total, above which the stage is worth a finding */
  hone_quantity quantity;
  hn_text subject; /* "Post-processing" */
  hn_text cause;
  hn_action actions[3]; /* what to do about it; those that are 0 behind the first: fewer */
} hn_stage;

/* Adds the finding when the stage's share of T_total is above its limit. */
void hn_stage_check(hn_diagnosis *d, const hn_stage *stage);

#endif
