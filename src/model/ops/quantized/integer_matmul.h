/* Products of stacks of integer matrices that become f32: what MatMulIntegerToFloat,
 * DynamicQuantizeMatMul and QAttention share. */
#ifndef HN_MODEL_OPS_INTEGER_MATMUL_H
#define HN_MODEL_OPS_INTEGER_MATMUL_H

#include "model/ops/quantized/quant_conv.h"

/* a: codes of shape a_desc with one scale and zero point. b, b_scale, b_zero (NULL: 0) and bias (NULL: none)
 * are as the operators have them: one number, or one a column. y: f32. */
typedef struct hn_integer_matmul {
  const hone_tensor *a, *b, *b_scale, *b_zero, *bias;
  float a_scale;
  int32_t a_zero;
} hn_integer_matmul;

/* Shape of the product, and whether scale, zero point and bias of b (inputs; UINT32_MAX: none) fit it. */
hone_status hn_integer_matmul_infer(const hone_infer *io, uint32_t b, uint32_t b_scale, uint32_t b_zero,
                                    uint32_t bias, hone_error *error);
hone_status hn_integer_matmul_run(hone_call *call, const hn_integer_matmul *p, float *y, hone_error *error);

#endif
