/* QuantizeLinear and DequantizeLinear between f32 and 8-bit integers with constant parameters, one for the
 * tensor or one a channel, in any dense layout. */
#ifndef HN_CPU_COMMON_QUANTIZE_STEP_H
#define HN_CPU_COMMON_QUANTIZE_STEP_H

#include "backends/cpu/common/step.h"

/* to_real: the output is f32 (DequantizeLinear). */
bool hn_quantize_step_accepts(const hone_step *step, bool to_real, hone_reason *why);
double hn_quantize_step_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_quantize_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                  hone_error *error);
hone_status hn_quantize_step_prepack(const hone_step *step, const hone_machine *machine, bool to_real,
                                     void *blob, hone_error *error);
hone_status hn_quantize_step_run(const hone_step_run *run, bool to_real);

/* Defines the tactic `nm` for the anchor `op`; to_real: the output is f32. */
#define HN_QUANTIZE_TACTIC(nm, op, to_real)                                                                  \
  static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {                \
    (void)machine;                                                                                           \
    return hn_quantize_step_accepts(step, to_real, why);                                                     \
  }                                                                                                          \
  static hone_status prepack(const hone_step *step, const hone_machine *machine, void *blob,                 \
                             hone_error *error) {                                                            \
    return hn_quantize_step_prepack(step, machine, to_real, blob, error);                                    \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    (void)error;                                                                                             \
    return hn_quantize_step_run(r, to_real);                                                                 \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = hn_quantize_step_cost,                             \
                                                  .need = hn_quantize_step_need,                             \
                                                  .prepack = prepack,                                        \
                                                  .run = run}

#endif
