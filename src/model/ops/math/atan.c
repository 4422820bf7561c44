/* Atan: the angle in (-pi/2, pi/2) of a tangent. */
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(f32, float, float, hn_angle_atan(v))
HN_UNARY_LOOP(f64, double, double, atan(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(atan, "Atan", 7, HN_TYPES_FLOAT, NULL);
