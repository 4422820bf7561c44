/* QLinearSigmoid: 1 / (1 + exp(-x)) on codes. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_sigmoid;

HN_FLOAT_FORM_OP(qlinear_sigmoid, "QLinearSigmoid",
                 HN_FORM(.op = &hn_op_sigmoid, .opset = 13, .operands = 1, .y = 3), HN_INPUTS(2, 5),
                 .types = HN_TYPES_CODES);
