/* QLinearReduceMean: ReduceMean on codes. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_reduce_mean;

static const hone_attr_desc attrs[] = {
    {"axes", HONE_ATTR_INTS, false, 0, 0}, {"keepdims", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_FLOAT_FORM_OP(qlinear_reduce_mean, "QLinearReduceMean",
                 HN_FORM(.op = &hn_op_reduce_mean, .opset = 13, .operands = 1, .y = 3), HN_INPUTS(2, 5),
                 .types = HN_TYPES_CODES, .attrs = attrs);
