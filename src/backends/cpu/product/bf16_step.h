/* What the tactics on the gemm_bf16 kernels share: blob, workspace and run around a described product.  A
 * tactic says which operator it takes and which of these arithmetics it uses:
 *   triple f32 operands as three bf16 parts, f32's own error: math f32 and wider licences, AMX
 *   split  f32 operands as two bf16 parts: math fast and wider licences, AMX
 *   bf16   operands rounded to bf16: math bf16 only
 *   f16    operands rounded to f16, whose range is smaller than bf16's: math tf32 only, which is precision
 * fp16 */
#ifndef HN_CPU_PRODUCT_BF16_STEP_H
#define HN_CPU_PRODUCT_BF16_STEP_H

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef enum hn_bf16_form { HN_BF16_ROUNDED, HN_BF16_SPLIT, HN_BF16_TRIPLE, HN_BF16_F16 } hn_bf16_form;

typedef struct hn_bf16_step {
  hn_bf16_conv conv;
  hn_isa isa;
  int64_t f16;             /* operands are f16 */
  int64_t matrix;          /* output rows are those of a row-major matrix */
  int64_t w_row, w_column; /* matrix: distances in B (K x N) */
  float alpha, bias_scale;
  int64_t bias_input;     /* anchor input that is the bias; 0: none */
  int64_t residual_input; /* anchor input of the output's dimensions that is added; 0: none */
  int64_t steps_at, bias_at, weights_at, bytes; /* in the blob; bias_at 0: the bias is read where it lies */
} hn_bf16_step;

/* Reads the step; false with a reason. */
typedef bool (*hn_bf16_describe)(const hone_step *s, const hone_machine *m, hn_bf16_form form,
                                 hn_bf16_step *d, hone_reason *why);
bool hn_bf16_describe_conv(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                           hone_reason *why);
bool hn_bf16_describe_gemm(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                           hone_reason *why);
bool hn_bf16_describe_matmul(const hone_step *s, const hone_machine *m, hn_bf16_form form, hn_bf16_step *d,
                             hone_reason *why);

typedef struct hn_bf16_step_config {
  hn_bf16_form form;
  hn_bf16_describe describe;
} hn_bf16_step_config;

HN_FAMILY_COUNTED(hn_bf16_step);
HN_FAMILY_SHARED(hn_bf16_step);

#define hn_cpu_bf16_tactic(NAME, ANCHOR, ...)                                                                \
  HN_TACTIC_COUNTED_SHARED(cpu, NAME, ANCHOR, 6, hn_bf16_step, __VA_ARGS__)

#endif
