/* Cos: cosine of radians. */
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

HN_ANGLE_LOOP(hn_angle_sine(x, 1), cosf)
HN_UNARY_LOOP(f64, double, double, cos(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(cos, "Cos", 7, HN_TYPES_FLOAT, NULL);
