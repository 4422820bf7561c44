/* QLinearConcat: Concat of codes of different scales. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_concat;

static const hone_attr_desc attrs[] = {{"axis", HONE_ATTR_INT, true, 0, 0}, {0}};

HN_FLOAT_FORM_OP(qlinear_concat, "QLinearConcat",
                 HN_FORM(.op = &hn_op_concat, .opset = 13, .first = 2, .y = 0), HN_INPUTS(5, HONE_VARIADIC),
                 .types = HONE_TYPES(HONE_DTYPE_F32), .attrs = attrs);
