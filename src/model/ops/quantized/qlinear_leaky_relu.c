/* QLinearLeakyRelu: alpha x below zero, x above, on codes. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_leaky_relu;

static const hone_attr_desc attrs[] = {{"alpha", HONE_ATTR_FLOAT, false, 0, 0}, {0}};

HN_FLOAT_FORM_OP(qlinear_leaky_relu, "QLinearLeakyRelu",
                 HN_FORM(.op = &hn_op_leaky_relu, .opset = 6, .operands = 1, .y = 3), HN_INPUTS(2, 5),
                 .types = HN_TYPES_CODES, .attrs = attrs);
