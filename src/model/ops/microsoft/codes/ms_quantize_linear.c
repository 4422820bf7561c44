/* QuantizeLinear, as ONNX has it at opset 21: to 16 and 4 bits before that opset had them. */
#include "model/ops/microsoft/common/inner.h"

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_SAME_OP(ms_quantize_linear, "QuantizeLinear", quantize_linear, 21, 2, 3,
           HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16), attrs);
