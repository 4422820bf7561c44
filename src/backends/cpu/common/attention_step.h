/* What the tactics of FusedAttention share. They differ in `parts`: 0 f32 arithmetic; 2 f32 operands split
 * into two bf16 parts each; 1 operands rounded to bf16. */
#ifndef HN_CPU_COMMON_ATTENTION_STEP_H
#define HN_CPU_COMMON_ATTENTION_STEP_H

#include "backends/cpu/common/attention_driver.h"
#include "backends/cpu/common/step.h"

bool hn_attention_describe(const hone_step *s, const hone_machine *m, int32_t parts, hn_attention *p,
                           hone_reason *why);
double hn_attention_cost(const hone_step *s, const hone_machine *m, int32_t parts);
hone_status hn_attention_need(const hone_step *s, const hone_machine *m, int32_t parts, hone_tactic_need *n,
                              hone_error *error);
hone_status hn_attention_prepack(const hone_step *s, const hone_machine *m, int32_t parts, void *blob,
                                 hone_error *error);
hone_status hn_attention_run(const hone_step_run *r, hone_error *error);

/* A tactic file is one line. */
#define HN_ATTENTION_TACTIC(NAME, PARTS)                                                                     \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    hn_attention p;                                                                                          \
    return hn_attention_describe(s, m, PARTS, &p, why);                                                      \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_attention_cost(s, m, PARTS); }   \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_attention_need(s, m, PARTS, n, error);                                                         \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_attention_prepack(s, m, PARTS, blob, error);                                                   \
  }                                                                                                          \
  static void work(const hone_step *s, const hone_machine *m, hone_work *w) {                                \
    (void)m;                                                                                                 \
    if (PARTS) hn_bf16_work(s->cost.macs, PARTS > 1, w);                                                     \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),                        \
                                                    .name = #NAME,                                           \
                                                    .device = "cpu",                                         \
                                                    .anchor = "FusedAttention",                              \
                                                    .version = 1,                                            \
                                                    .accepts = accepts,                                      \
                                                    .cost = cost,                                            \
                                                    .need = need,                                            \
                                                    .prepack = prepack,                                      \
                                                    .run = hn_attention_run,                                 \
                                                    .work = work}

#endif
