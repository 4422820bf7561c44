/* HardTanh: x between -1 and 1. Pointwise programs have it as a function, so that it is fast on every device.
 */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(hard_tanh, "HardTanh", 1,
                 (&(const hone_function){
                     .op = HONE_PW_CLIP, .operands = 1, .alpha_otherwise = -1, .beta_otherwise = 1}),
                 fmin(fmax(v, (T)-1), (T)1));
