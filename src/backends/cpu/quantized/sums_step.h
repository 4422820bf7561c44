/* ConvInteger and MatMulInteger, whose sums stay i32, and ConvIntegerToFloat and MatMulIntegerToFloat
 * (optimize/lower/integer_sums.c, codes_sums.c): codes times constant codes, summed in i32, times a scale
 * that may be known only in the run, then the step's epilogue in f32; ConvIntegerToCodes and
 * MatMulIntegerToCodes: then quantised. Codes are of 8 bits, or, where sums become f32, of 16: two products.
 * On the kernels of QLinearConv; the zero point and the scale of the input come with each run. */
#ifndef HN_CPU_QUANTIZED_SUMS_STEP_H
#define HN_CPU_QUANTIZED_SUMS_STEP_H

#include "backends/cpu/quantized/depthwise_int8_driver.h"
#include "backends/cpu/quantized/int8_driver.h"
#include "backends/tactic.h"

/* Inputs of such a step: codes, their zero point (one value; left out: 0), constant weights, their zero point
 * (constant; left out: 0), the scale of the sums (one value, or one a channel), a bias in f32 (one a channel;
 * may be left out); of what becomes codes their scale and zero point (constants; left out: 0). The weights of
 * a Gemm lie as it has them. */
enum {
  HN_SUMS_X,
  HN_SUMS_X_ZERO,
  HN_SUMS_W,
  HN_SUMS_W_ZERO,
  HN_SUMS_SCALE,
  HN_SUMS_BIAS,
  HN_SUMS_INPUTS = 5,
  HN_SUMS_Y_SCALE,
  HN_SUMS_Y_ZERO
};

/* ConvInteger and MatMulInteger themselves have fewer inputs, in another order: no scale, and both zero
 * points at the end. */
static inline bool hn_sums_whole(const hone_step *s) { return s->n_anchor_inputs < HN_SUMS_INPUTS; }
static inline uint32_t hn_sums_at(const hone_step *s, uint32_t role) {
  static const uint32_t whole[] = {
      [HN_SUMS_X] = 0, [HN_SUMS_W] = 1, [HN_SUMS_X_ZERO] = 2, [HN_SUMS_W_ZERO] = 3};
  return hn_sums_whole(s) && role <= HN_SUMS_W_ZERO ? whole[role] : role;
}

typedef struct hn_sums_step {
  hn_int8_conv conv; /* of one filter a channel: unused */
  hn_dw8 dw;
  hn_isa isa;
  int64_t depthwise, matrix, coded;
  int64_t y_vectors;                             /* coded: one scale and zero point a channel */
  int64_t channels, vectors;                     /* vectors: one scale a channel */
  int64_t w_column, w_tap, w_channel;            /* distances in the weights, see hn_int8_pack */
  int64_t values;                                /* of bias and scale, in the kernels' order */
  int64_t sums_at, offset_at, weights_at, bytes; /* in the blob */
  /* in the workspace; low_at, planes_at: of codes of 16 bits their low bytes' bias, the bytes */
  int64_t bias_at, scale_at, low_at, y_at, planes_at, scratch_at;
} hn_sums_step;

typedef struct hn_sums_step_config {
  bool (*describe)(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why);
} hn_sums_step_config;

bool hn_sums_describe_conv(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why);
bool hn_sums_describe_depthwise(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why);
bool hn_sums_describe_matmul(const hone_step *s, const hone_machine *m, hn_sums_step *d, hone_reason *why);

HN_FAMILY_COUNTED(hn_sums_step);
HN_FAMILY_SHARED(hn_sums_step);

#define hn_cpu_sums_tactic(NAME, ANCHOR, ...)                                                                \
  HN_TACTIC_COUNTED_SHARED(cpu, NAME, ANCHOR, 10, hn_sums_step, __VA_ARGS__)

#endif
