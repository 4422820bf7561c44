/* What the tactics on the gemm_int8 kernels share: QLinearConv, QLinearMatMul and QLinearGemm with constant
 * weights that fit i8 (symmetric, or u8 around 128), exact in i32. */
#ifndef HN_CPU_COMMON_INT8_STEP_H
#define HN_CPU_COMMON_INT8_STEP_H

#include "backends/cpu/common/int8_driver.h"
#include "backends/cpu/common/qlinear_step.h"

typedef struct hn_int8_step {
  hn_int8_conv conv;
  hn_qlinear_info q;
  int64_t w_column, w_tap, w_channel; /* distances in the weights, see hn_int8_pack */
  int64_t w_is_u8;
  int64_t bias_at, scale_at, weights_at, bytes; /* in the blob */
} hn_int8_step;

/* Weights without zero point, or u8 around 128; sums that fit.  False with a reason. */
bool hn_int8_weights_fit(const hone_step *s, const hn_qlinear_info *q, int64_t products, hone_reason *why);

/* Bias with the zero point of the input taken off: sums[c] is the sum of channel c's weights. */
int32_t hn_int8_bias(const hone_step *s, const hn_qlinear_info *q, int64_t channel, int32_t sum);

/* Reads the step; false with a reason. */
typedef bool (*hn_int8_describe)(const hone_step *s, const hone_machine *m, hn_int8_step *d,
                                 hone_reason *why);
bool hn_int8_describe_conv(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);
bool hn_int8_describe_gemm(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);
bool hn_int8_describe_matmul(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);

double hn_int8_step_cost(const hone_step *s, const hone_machine *m, hn_int8_describe describe);
hone_status hn_int8_step_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,
                              hone_error *error, hn_int8_describe describe);
hone_status hn_int8_step_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error,
                                 hn_int8_describe describe);
hone_status hn_int8_step_run(const hone_step_run *r, hone_error *error);

/* A tactic file is one line. */
#define HN_INT8_TACTIC(NAME, ANCHOR, DESCRIBE)                                                               \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    hn_int8_step d;                                                                                          \
    return DESCRIBE(s, m, &d, why);                                                                          \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) {                                            \
    return hn_int8_step_cost(s, m, DESCRIBE);                                                                \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_int8_step_need(s, m, n, error, DESCRIBE);                                                      \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_int8_step_prepack(s, m, blob, error, DESCRIBE);                                                \
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
                                                    .run = hn_int8_step_run}

#endif
