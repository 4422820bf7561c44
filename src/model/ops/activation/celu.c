/* Celu: max(0, x) + min(0, alpha (exp(x / alpha) - 1)). */
#include "model/ops/common/elementwise.h"

HN_UNARY_ALPHA_OP(celu, "Celu", 12, HONE_PW_CELU, 1,
                  v != v ? v : fmax((T)0, v) + fmin((T)0, p0 *expm1(v / p0)));
