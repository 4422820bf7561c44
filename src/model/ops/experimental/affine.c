/* Affine: alpha x + beta. */
#include "model/ops/experimental/experimental.h"

HN_EXPERIMENTAL_OP(affine, "Affine", false, 1, 0, p0 *v + p1);
