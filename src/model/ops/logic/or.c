/* Or: true where an operand is. */
#include "model/ops/common/elementwise.h"

HN_BINARY_LOOP(bool, uint8_t, bool, uint8_t, x || y)
static const hn_binary_loops loops = {.of = {[HONE_DTYPE_BOOL] = loop_bool}};

HN_BINARY_OP(or, "Or", 1, HN_TYPES_BOOL, HN_FUNCTION(HONE_PW_OR, 2), hn_infer_compare);
