/* Sum: all operands added. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x + y)
static const hn_binary_loops loops = {.of = {[HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64}};

HN_VARIADIC_OP(sum, "Sum", HN_TYPES_FLOAT, HN_FUNCTION(HONE_PW_ADD, 0));
