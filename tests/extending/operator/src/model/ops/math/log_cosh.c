/* LogCosh: log(cosh(x)), written so that large |x| do not overflow. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(log_cosh, "LogCosh", 1, fabs(v) + log1p(exp((T)-2 * fabs(v))) - (T)0.6931471805599453);
