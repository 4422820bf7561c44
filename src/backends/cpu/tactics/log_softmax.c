/* LogSoftmax over one axis. */
#include "backends/cpu/common/softmax_step.h"

static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {
  hn_reduction r;
  return hn_softmax_of(step, machine, &r, why);
}

static hone_status run(const hone_step_run *r, hone_error *error) { return hn_softmax_run(r, error, true); }

const struct hone_tactic_desc hn_tactic_log_softmax = {HONE_DESC_HEAD(hone_tactic_desc),
                                                       .name = "log_softmax",
                                                       .device = "cpu",
                                                       .anchor = "LogSoftmax",
                                                       .version = 1,
                                                       .accepts = accepts,
                                                       .cost = hn_softmax_cost,
                                                       .need = hn_reduction_need,
                                                       .prepack = hn_softmax_prepack,
                                                       .run = run};
