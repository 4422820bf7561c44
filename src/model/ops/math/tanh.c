/* Tanh: hyperbolic tangent. */
#include "model/ops/common/elementwise.h"
#include "model/ops/common/tanh.h"

HN_UNARY_LOOP(f32, float, float, tanhf(v))
HN_UNARY_WIDE_LOOP(f64, double, double, hn_tanh(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(tanh, "Tanh", 1, HN_TYPES_FLOAT, HN_FUNCTION(HONE_PW_TANH, 1));
