/* Post-processing holds up the next inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d, &(hn_stage){.ms = d->p->stages.post_ms,
                     .limit_pct = d->t->post_share,
                     .quantity = HONE_QUANTITY_POST,
                     .subject = "Post-processing",
                     .cause = "Decoding and filtering of the outputs (NMS, top-k) run after each inference, "
                              "often on one thread. Running them beside the next inference, in parallel or "
                              "on the device takes them off the path."});
}

const struct hn_rule hn_rule_slow_post = {"slow_post", run};
