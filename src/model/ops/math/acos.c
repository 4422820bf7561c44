/* Acos: the angle in [0, pi] of a cosine. */
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(f32, float, float, hn_angle_acos(v))
HN_UNARY_LOOP(f64, double, double, acos(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(acos, "Acos", 7, HN_TYPES_FLOAT, NULL);
