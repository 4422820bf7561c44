/* QLinearWhere: Where between codes of different scales. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_where;

HN_FLOAT_FORM_OP(qlinear_where, "QLinearWhere",
                 HN_FORM(.op = &hn_op_where, .opset = 16, .plain = 1, .first = 1, .operands = 2, .y = 7),
                 HN_INPUTS(3, 9), .types = HONE_TYPES(HONE_DTYPE_BOOL));
