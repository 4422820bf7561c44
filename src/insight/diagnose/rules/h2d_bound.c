/* Copies to the device hold up the inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d, &(hn_stage){.ms = d->p->stages.h2d_ms,
                     .limit_pct = d->t->h2d_share,
                     .quantity = HONE_QUANTITY_H2D,
                     .subject = "Copying to the device",
                     .cause = "Inputs are copied while the device waits. Pinned memory, one merged copy and "
                              "copying the next input during this inference hide it; 8-bit inputs with "
                              "normalisation on the device make it four times smaller."});
}

const struct hn_rule hn_rule_h2d_bound = {"h2d_bound", run};
