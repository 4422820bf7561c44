/* LeakyRelu: alpha x below zero, x above. */
#include "model/ops/common/elementwise.h"

HN_UNARY_ALPHA_OP(leaky_relu, "LeakyRelu", 1, HONE_PW_LEAKYRELU, 0.01f, v < 0 ? p0 * v : v);
