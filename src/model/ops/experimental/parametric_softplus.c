/* ParametricSoftplus: alpha log(1 + exp(beta x)), without overflow. */
#include "model/ops/experimental/experimental.h"

HN_EXPERIMENTAL_OP(parametric_softplus, "ParametricSoftplus", true, 1, 1,
                   p0 *(p1 *v > 0 ? p1 * v + log1p(exp(-(p1 * v))) : log1p(exp(p1 * v))));
