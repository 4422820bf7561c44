/* HardSwish: x clip(x / 6 + 1/2, 0, 1). */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(hard_swish, "HardSwish", 14,
                 (&(const hone_function){.op = HONE_PW_HARDSWISH,
                                         .operands = 1,
                                         .alpha_otherwise = 1.0f / 6,
                                         .beta_otherwise = 0.5f}),
                 v *fmax((T)0, fmin((T)1, v / (T)6 + (T)0.5)));
