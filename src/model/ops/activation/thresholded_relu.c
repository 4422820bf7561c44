/* ThresholdedRelu: x above alpha, else 0. */
#include "model/ops/common/elementwise.h"

HN_UNARY_ALPHA_OP(thresholded_relu, "ThresholdedRelu", 1, HONE_PW_NONE, 1, v > p0 ? v : (T)0);
