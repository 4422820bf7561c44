/* MaxPool and AveragePool over channels-last images of one to three dimensions. */
#ifndef HN_CPU_COMMON_POOLING_H
#define HN_CPU_COMMON_POOLING_H

#include "backends/cpu/common/step.h"

typedef struct hn_pooling {
  hn_isa isa;
  bool max, count_padding;
  hn_pixels x, y;
  int64_t kernel[3], stride[3], dilation[3], begin[3], end[3];
} hn_pooling;

bool hn_pooling_of(const hone_step *step, const hone_machine *machine, bool max, hn_pooling *p,
                   hone_reason *why);
double hn_pooling_cost(const hone_step *step, const hone_machine *machine, bool max);
hone_status hn_pooling_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                            hone_error *error);
hone_status hn_pooling_prepack(const hone_step *step, const hone_machine *machine, bool max, void *blob,
                               hone_error *error);
hone_status hn_pooling_run(const hone_step_run *run, hone_error *error);

/* Defines the tactic `nm` for the anchor `op`. */
#define HN_POOLING_TACTIC(nm, op, max)                                                                       \
  static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {                \
    hn_pooling p;                                                                                            \
    return hn_pooling_of(step, machine, max, &p, why);                                                       \
  }                                                                                                          \
  static double cost(const hone_step *step, const hone_machine *machine) {                                   \
    return hn_pooling_cost(step, machine, max);                                                              \
  }                                                                                                          \
  static hone_status prepack(const hone_step *step, const hone_machine *machine, void *blob,                 \
                             hone_error *error) {                                                            \
    return hn_pooling_prepack(step, machine, max, blob, error);                                              \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = cost,                                              \
                                                  .need = hn_pooling_need,                                   \
                                                  .prepack = prepack,                                        \
                                                  .run = hn_pooling_run}

#endif
