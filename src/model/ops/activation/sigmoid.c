/* Sigmoid: 1 / (1 + exp(-x)). */
#include "model/ops/common/elementwise.h"
#include "model/ops/common/exp.h"

HN_UNARY_LOOP(f32, float, float, 1.0f / (1.0f + expf(-v)))
HN_UNARY_WIDE_LOOP(f64, double, double, 1 / (1 + hn_exp(-v)))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(sigmoid, "Sigmoid", 1, HN_TYPES_FLOAT, HN_FUNCTION(HONE_PW_SIGMOID, 1));
