/* QLinearMul: a b on codes. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_mul;

HN_FLOAT_FORM_OP(qlinear_mul, "QLinearMul", HN_FORM(.op = &hn_op_mul, .opset = 14, .operands = 2, .y = 6),
                 HN_INPUTS(2, 8), .types = HN_TYPES_CODES);
