/* ScaledTanh: alpha tanh(beta x). */
#include "model/ops/experimental/experimental.h"

HN_EXPERIMENTAL_OP(scaled_tanh, "ScaledTanh", true, 1, 1, p0 *tanh(p1 *v));
