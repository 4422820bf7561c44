/* Asin: the angle in [-pi/2, pi/2] of a sine. */
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(f32, float, float, hn_angle_asin(v))
HN_UNARY_LOOP(f64, double, double, asin(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(asin, "Asin", 7, HN_TYPES_FLOAT, NULL);
