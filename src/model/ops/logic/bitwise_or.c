/* BitwiseOr: bits that are set in either integer. */
#include "model/ops/common/elementwise.h"

HN_BINARY_WRAP_LOOPS(x | y)
static const hn_binary_loops loops = HN_BINARY_WRAP_INT_TABLE;

HN_BINARY_OP(bitwise_or, "BitwiseOr", 18, HN_TYPES_SINT | HN_TYPES_UINT, NULL, hn_infer_binary);
