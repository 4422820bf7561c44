/* QLinearGlobalAveragePool: GlobalAveragePool on codes. */
#include "model/ops/quantized/float_form.h"

extern const hone_op_desc hn_op_global_average_pool;

static const hone_attr_desc attrs[] = {{"channels_last", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_FLOAT_FORM_OP(qlinear_global_average_pool, "QLinearGlobalAveragePool",
                 HN_FORM(.op = &hn_op_global_average_pool, .opset = 1, .operands = 1, .y = 3),
                 HN_INPUTS(2, 5), .types = HN_TYPES_CODES, .attrs = attrs);
