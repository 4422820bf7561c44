/* Pre-processing holds up the inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d,
      &(hn_stage){.ms = d->p->stages.pre_ms,
                  .limit_pct = d->t->pre_share,
                  .quantity = HONE_QUANTITY_PRE,
                  .subject = "Pre-processing",
                  .cause = "Decoding, resizing and normalising run before each inference instead of beside "
                           "it. A pipeline prepares the next input while this one is computed; "
                           "normalisation can move into the first layer."});
}

const struct hn_rule hn_rule_slow_pre = {"slow_pre", run};
