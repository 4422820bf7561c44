/* DequantizeLinear, as ONNX has it at opset 21: of 16 and 4 bits before that opset had them. */
#include "model/ops/microsoft/common/inner.h"

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_SAME_OP(ms_dequantize_linear, "DequantizeLinear", dequantize_linear, 21, 2, 3,
           HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U16) |
               HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_U4) |
               HONE_TYPES(HONE_DTYPE_I4),
           attrs);
