/* What the tactics on the gemm_int8 kernels share: QLinearConv, QLinearMatMul and QLinearGemm with constant
 * weights of any zero point, exact in i32. */
#ifndef HN_CPU_QUANTIZED_INT8_STEP_H
#define HN_CPU_QUANTIZED_INT8_STEP_H

#include "backends/cpu/quantized/int8_driver.h"
#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/tactic.h"

typedef struct hn_int8_step {
  hn_int8_conv conv;
  hn_qlinear_info q;
  int64_t w_column, w_tap, w_channel; /* distances in the weights, see hn_int8_pack */
  int64_t bias_at, scale_at, sums_at, offset_at, weights_at, bytes; /* in the blob */
} hn_int8_step;

/* The step's weights: codes and zero points. */
hn_weight_codes hn_int8_codes(const hone_step *s);

/* Whether sums fit.  False with a reason. */
bool hn_int8_sums_fit(const hone_step *s, const hn_qlinear_info *q, int64_t products, hone_reason *why);

/* Bias with the zero point of the input taken off: `sum` is that of the channel's weights. */
int32_t hn_int8_bias(const hone_step *s, const hn_qlinear_info *q, int64_t channel, int32_t sum);

/* Reads the step; false with a reason. */
typedef bool (*hn_int8_describe)(const hone_step *s, const hone_machine *m, hn_int8_step *d,
                                 hone_reason *why);
bool hn_int8_describe_conv(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);
bool hn_int8_describe_gemm(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);
bool hn_int8_describe_matmul(const hone_step *s, const hone_machine *m, hn_int8_step *d, hone_reason *why);

typedef struct hn_int8_step_config {
  hn_int8_describe describe;
} hn_int8_step_config;

HN_FAMILY_PACKED(hn_int8_step);
HN_FAMILY_SHARED(hn_int8_step);

#define hn_cpu_int8_tactic(NAME, ANCHOR, ...)                                                                \
  HN_TACTIC_PACKED_SHARED(cpu, NAME, ANCHOR, 8, hn_int8_step, __VA_ARGS__)

#endif
