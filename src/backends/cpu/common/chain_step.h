/* What the tactics of "ConvChain" share: (1x1 +) depthwise (+ 1x1) convolution with their epilogues, in row
 * groups and channel panels that stay in L2 (chain_driver.h). parts: the arithmetic of the 1x1 convolutions,
 * 0 f32, 2 f32 split into two bf16 numbers, 1 bf16. */
#ifndef HN_CPU_COMMON_CHAIN_STEP_H
#define HN_CPU_COMMON_CHAIN_STEP_H

#include "backends/cpu/common/step.h"

bool hn_chain_step_accepts(const hone_step *s, const hone_machine *m, int parts, hone_reason *why);
double hn_chain_step_cost(const hone_step *s, const hone_machine *m, int parts);
hone_status hn_chain_step_need(const hone_step *s, const hone_machine *m, int parts, hone_tactic_need *n,
                               hone_error *error);
hone_status hn_chain_step_prepack(const hone_step *s, const hone_machine *m, int parts, void *blob,
                                  hone_error *error);
hone_status hn_chain_step_run(const hone_step_run *r, hone_error *error);
void hn_chain_step_work(const hone_step *s, const hone_machine *m, int parts, hone_work *work);

/* A tactic file is one line. */
#define HN_CHAIN_TACTIC(NAME, PARTS)                                                                         \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_chain_step_accepts(s, m, PARTS, why);                                                          \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_chain_step_cost(s, m, PARTS); }  \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_chain_step_need(s, m, PARTS, n, error);                                                        \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_chain_step_prepack(s, m, PARTS, blob, error);                                                  \
  }                                                                                                          \
  static void work(const hone_step *s, const hone_machine *m, hone_work *w) {                                \
    hn_chain_step_work(s, m, PARTS, w);                                                                      \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),                        \
                                                    .name = #NAME,                                           \
                                                    .device = "cpu",                                         \
                                                    .anchor = "ConvChain",                                   \
                                                    .version = 1,                                            \
                                                    .accepts = accepts,                                      \
                                                    .cost = cost,                                            \
                                                    .need = need,                                            \
                                                    .prepack = prepack,                                      \
                                                    .run = hn_chain_step_run,                                \
                                                    .work = work}

#endif
