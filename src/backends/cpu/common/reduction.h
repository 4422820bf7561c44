/* Reductions of f32 tensors in any layout whose reduced dimensions merge into one: trailing axes, spatial
 * axes of both layouts, a single axis. */
#ifndef HN_CPU_COMMON_REDUCTION_H
#define HN_CPU_COMMON_REDUCTION_H

#include "base/nest.h"
#include "backends/cpu/common/step.h"
#include "backends/cpu/kernels/reduce/reduce.h"

typedef enum hn_reduction_finish {
  HN_FINISH_NONE,
  HN_FINISH_MEAN,
  HN_FINISH_SQRT,
  HN_FINISH_LOG
} hn_reduction_finish;

typedef struct hn_reduction {
  hn_isa isa;
  hn_reduce_kind kind;
  hn_reduction_finish finish;
  bool columns;   /* the reduced dimension is not the contiguous one */
  hn_nest nest;   /* operand 0: x, 1: y; columns: the last two are (reduced, kept) */
  int64_t length; /* of the reduced dimension */
  int64_t kept;   /* columns: length of the contiguous kept dimension */
  int64_t outer;  /* rows, or matrices to reduce */
  int64_t chunk;  /* columns: kept elements a task does */
} hn_reduction;

/* Builds the nest of x and y over x's dimensions and brings the dimensions named in the bit set `axes` to
 * one. y_stride: y's strides along x's dimensions (0 in the reduced ones when y lacks them). Refuses what
 * does not merge. Sets nest, columns, length, kept, outer. */
bool hn_reduction_collapse(const hone_tensor_desc *x, const int64_t *y_stride, uint32_t axes, hn_reduction *r,
                           hone_reason *why);

typedef struct hn_reduction_rule {
  hn_reduce_kind kind;
  hn_reduction_finish finish;
  bool spatial; /* GlobalAveragePool and GlobalMaxPool: all axes from 2 on */
} hn_reduction_rule;

bool hn_reduction_of(const hone_step *step, const hone_machine *machine, hn_reduction_rule rule,
                     hn_reduction *r, hone_reason *why);
double hn_reduction_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_reduction_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                              hone_error *error);
hone_status hn_reduction_run(const hone_step_run *run, hone_error *error);

/* Defines the tactic `nm` for the anchor `op`; the arguments after it are a hn_reduction_rule. */
#define HN_REDUCTION_TACTIC(nm, op, ...)                                                                     \
  static const hn_reduction_rule rule = {__VA_ARGS__};                                                       \
  static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {                \
    hn_reduction r;                                                                                          \
    return hn_reduction_of(step, machine, rule, &r, why);                                                    \
  }                                                                                                          \
  static hone_status prepack(const hone_step *step, const hone_machine *machine, void *blob,                 \
                             hone_error *error) {                                                            \
    hone_reason why = {""};                                                                                  \
    if (hn_reduction_of(step, machine, rule, blob, &why)) return HONE_OK;                                    \
    return hn_fail(error, HONE_ERROR_INTERNAL, #nm ": %s", why.text);                                        \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = hn_reduction_cost,                                 \
                                                  .need = hn_reduction_need,                                 \
                                                  .prepack = prepack,                                        \
                                                  .run = hn_reduction_run}

#endif
