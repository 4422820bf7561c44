/* QLinearAveragePool: AveragePool on codes. */
#include "model/ops/quantized/float_form.h"
#include "model/ops/pooling/pool.h"

extern const hone_op_desc hn_op_average_pool;

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       {"count_include_pad", HONE_ATTR_INT, false, 0, 0},
                                       {"ceil_mode", HONE_ATTR_INT, false, 0, 0},
                                       {"channels_last", HONE_ATTR_INT, false, 0, 0},
                                       {0}};

HN_FLOAT_FORM_OP(qlinear_average_pool, "QLinearAveragePool",
                 HN_FORM(.op = &hn_op_average_pool, .opset = 11, .operands = 1, .y = 3), HN_INPUTS(2, 5),
                 .types = HN_TYPES_CODES, .attrs = attrs);
