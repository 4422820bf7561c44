/* What the tactics on the gemm_bf16 kernels share: blob, workspace and run around a described product.  A
 * tactic says which operator it takes and which of the two arithmetics it uses:
 *   x3  f32 operands split into two bf16 parts: math fast and wider licences, tiers whose kernels have it
 *   x1  operands rounded to bf16: math bf16 only */
#ifndef HN_CPU_COMMON_BF16_STEP_H
#define HN_CPU_COMMON_BF16_STEP_H

#include "backends/cpu/common/bf16_driver.h"
#include "backends/cpu/common/step.h"

typedef struct hn_bf16_step {
  hn_bf16_conv conv;
  hn_isa isa;
  int64_t matrix;          /* output rows are those of a row-major matrix */
  int64_t w_row, w_column; /* matrix: distances in B (K x N) */
  float alpha, bias_scale;
  int64_t bias_input;     /* anchor input that is the bias; 0: none */
  int64_t residual_input; /* anchor input of the output's dimensions that is added; 0: none */
  int64_t steps_at, bias_at, weights_at, bytes; /* in the blob; bias_at 0: the bias is read where it lies */
} hn_bf16_step;

/* Reads the step; false with a reason. */
typedef bool (*hn_bf16_describe)(const hone_step *s, const hone_machine *m, bool x3, hn_bf16_step *d,
                                 hone_reason *why);
bool hn_bf16_describe_conv(const hone_step *s, const hone_machine *m, bool x3, hn_bf16_step *d,
                           hone_reason *why);
bool hn_bf16_describe_gemm(const hone_step *s, const hone_machine *m, bool x3, hn_bf16_step *d,
                           hone_reason *why);
bool hn_bf16_describe_matmul(const hone_step *s, const hone_machine *m, bool x3, hn_bf16_step *d,
                             hone_reason *why);

double hn_bf16_step_cost(const hone_step *s, const hone_machine *m, bool x3, hn_bf16_describe describe);
hone_status hn_bf16_step_need(const hone_step *s, const hone_machine *m, bool x3, hone_tactic_need *n,
                              hone_error *error, hn_bf16_describe describe);
hone_status hn_bf16_step_prepack(const hone_step *s, const hone_machine *m, bool x3, void *blob,
                                 hone_error *error, hn_bf16_describe describe);
hone_status hn_bf16_step_run(const hone_step_run *r, hone_error *error);

/* A tactic file is one line. */
#define HN_BF16_TACTIC(NAME, ANCHOR, X3, DESCRIBE)                                                           \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    hn_bf16_step d;                                                                                          \
    return DESCRIBE(s, m, X3, &d, why);                                                                      \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) {                                            \
    return hn_bf16_step_cost(s, m, X3, DESCRIBE);                                                            \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_bf16_step_need(s, m, X3, n, error, DESCRIBE);                                                  \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_bf16_step_prepack(s, m, X3, blob, error, DESCRIBE);                                            \
  }                                                                                                          \
  static void work(const hone_step *s, const hone_machine *m, hone_work *w) {                                \
    (void)m;                                                                                                 \
    hn_bf16_work(s->cost.macs, X3, w);                                                                       \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),                        \
                                                    .name = #NAME,                                           \
                                                    .device = "cpu",                                         \
                                                    .anchor = ANCHOR,                                        \
                                                    .version = 1,                                            \
                                                    .accepts = accepts,                                      \
                                                    .cost = cost,                                            \
                                                    .need = need,                                            \
                                                    .prepack = prepack,                                      \
                                                    .run = hn_bf16_step_run,                                 \
                                                    .work = work}

#endif
