/* What the tactics on the gemm_bf16 kernels share: blob, workspace and run around a described product.  A
 * tactic says which operator it takes and which of the two arithmetics it uses:
 *   x3  f32 operands split into two bf16 parts: math fast and wider licences, tiers whose kernels have it
 *   x1  operands rounded to bf16: math bf16 only */
#ifndef HN_CPU_PRODUCT_BF16_STEP_H
#define HN_CPU_PRODUCT_BF16_STEP_H

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

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

typedef struct hn_bf16_step_config {
  bool x3;
  hn_bf16_describe describe;
} hn_bf16_step_config;

HN_FAMILY_COUNTED(hn_bf16_step);

#define hn_cpu_bf16_tactic(NAME, ANCHOR, ...)                                                                \
  HN_TACTIC_COUNTED(cpu, NAME, ANCHOR, 1, hn_bf16_step, __VA_ARGS__)

#endif
