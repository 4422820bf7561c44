/* The integer convolutions: operands less their zero points, summed exactly. */
#ifndef HN_MODEL_OPS_QUANT_CONV_H
#define HN_MODEL_OPS_QUANT_CONV_H

#include "model/ops/conv/conv_core.h"
#include "model/ops/quantized/quant.h"

#define HN_TYPES_8BIT (HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8))

/* HONE_ERROR_INPUT unless input i is left out, holds one value, or is a vector of `length`. */
hone_status hn_infer_quant_param(const hone_infer *io, uint32_t i, int64_t length, hone_error *error);
/* Convolves input 0 with input w_input; x_zero is one value, w_zero one or one a filter (NULL: 0). */
hone_status hn_quant_conv(hone_call *call, uint32_t w_input, const hone_tensor *x_zero,
                          const hone_tensor *w_zero, hn_conv_sink sink, void *arg, hone_error *error);

#endif
