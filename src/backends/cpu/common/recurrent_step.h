/* RNN, GRU and LSTM as tactics: what the step says, the blob, and the run around the driver. */
#ifndef HN_CPU_COMMON_RECURRENT_STEP_H
#define HN_CPU_COMMON_RECURRENT_STEP_H

#include "backends/cpu/common/recurrent_driver.h"

bool hn_recurrent_accepts(const hone_step *s, const hone_machine *m, const hn_rnn_kind *kind,
                          hone_reason *why);
double hn_recurrent_cost(const hone_step *s, const hone_machine *m, const hn_rnn_kind *kind);
hone_status hn_recurrent_need(const hone_step *s, const hone_machine *m, const hn_rnn_kind *kind,
                              hone_tactic_need *n, hone_error *error);
hone_status hn_recurrent_prepack(const hone_step *s, const hone_machine *m, const hn_rnn_kind *kind,
                                 void *blob, hone_error *error);
hone_status hn_recurrent_run(const hone_step_run *r, hone_error *error);

/* The tactic `nm` of the operator `op`. */
#define HN_RECURRENT_TACTIC(nm, op, kind)                                                                    \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_recurrent_accepts(s, m, kind, why);                                                            \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_recurrent_cost(s, m, kind); }    \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *e) {   \
    return hn_recurrent_need(s, m, kind, n, e);                                                              \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *e) {         \
    return hn_recurrent_prepack(s, m, kind, blob, e);                                                        \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = cost,                                              \
                                                  .need = need,                                              \
                                                  .prepack = prepack,                                        \
                                                  .run = hn_recurrent_run}

#endif
