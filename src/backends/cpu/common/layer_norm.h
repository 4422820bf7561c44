/* Layer normalisation over trailing axes of row-major tensors, with the additions that may precede it. */
#ifndef HN_CPU_COMMON_LAYER_NORM_H
#define HN_CPU_COMMON_LAYER_NORM_H

#include "backends/cpu/common/step.h"

/* Which of the step's tensors play which role; HN_NO_TENSOR where there is none. */
typedef struct hn_layer_norm_roles {
  uint32_t residual, bias, gamma, beta; /* inputs */
  uint32_t mean, inv_std, sum;          /* outputs */
  bool rms;                             /* no mean is subtracted */
  float epsilon;                        /* when the attribute is absent */
} hn_layer_norm_roles;

#define HN_NO_TENSOR 0xffffffffu

bool hn_layer_norm_accepts(const hone_step *step, const hn_layer_norm_roles *roles, hone_reason *why);
double hn_layer_norm_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_layer_norm_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                               hone_error *error);
hone_status hn_layer_norm_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                  hone_error *error);
hone_status hn_layer_norm_run(const hone_step_run *run, const hn_layer_norm_roles *roles);

/* Defines the tactic `nm` for the anchor `op`; the arguments after it are designators of hn_layer_norm_roles,
 * which has none of the tensors unless named. */
#define HN_LAYER_NORM_TACTIC(nm, op, ...)                                                                    \
  static const hn_layer_norm_roles roles = {__VA_ARGS__};                                                    \
  static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {                \
    (void)machine;                                                                                           \
    return hn_layer_norm_accepts(step, &roles, why);                                                         \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    (void)error;                                                                                             \
    return hn_layer_norm_run(r, &roles);                                                                     \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = hn_layer_norm_cost,                                \
                                                  .need = hn_layer_norm_need,                                \
                                                  .prepack = hn_layer_norm_prepack,                          \
                                                  .run = run}

#endif
