/* QLinearSoftmax: Softmax on codes, as the ONNX opset in attribute `opset` defines it. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_softmax;

static const hone_attr_desc attrs[] = {
    {"axis", HONE_ATTR_INT, false, 0, 0}, {"opset", HONE_ATTR_INT, true, 0, 0}, {0}};

HN_FLOAT_FORM_OP(qlinear_softmax, "QLinearSoftmax", HN_FORM(.op = &hn_op_softmax, .operands = 1, .y = 3),
                 HN_INPUTS(2, 5), .types = HN_TYPES_CODES, .attrs = attrs);
