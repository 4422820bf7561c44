/* Sigmoid: 1 / (1 + exp(-x)). */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(sigmoid, "Sigmoid", 1, HN_FUNCTION(HONE_PW_SIGMOID, 1), (T)1 / ((T)1 + exp(-v)));
