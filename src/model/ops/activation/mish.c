/* Mish: x tanh(log(1 + exp(x))); the logarithm is written so that large x do not overflow. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(mish, "Mish", 18, HN_FUNCTION(HONE_PW_MISH, 1),
                 v *tanh(fmax(v, (T)0) + log1p(exp(-fabs(v)))));
