/* Softplus: log(1 + exp(x)), written so that large x do not overflow. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(softplus, "Softplus", 1, HN_FUNCTION(HONE_PW_SOFTPLUS, 1),
                 fmax(v, (T)0) + log1p(exp(-fabs(v))));
