/* Greater: a > b. */
#include "model/ops/common/elementwise.h"

HN_BINARY_COMPARE_LOOPS(x > y)
static const hn_binary_loops loops = HN_BINARY_NUMBER_TABLE;

HN_BINARY_OP(greater, "Greater", 1, HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_GT, 2), hn_infer_compare);
