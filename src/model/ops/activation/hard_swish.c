/* HardSwish: x clip(x / 6 + 1/2, 0, 1). */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(hard_swish, "HardSwish", 14, v *fmax((T)0, fmin((T)1, v / (T)6 + (T)0.5)));
