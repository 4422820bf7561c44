/* Sin: sine of radians. */
#include "model/ops/common/angles.h"
#include "model/ops/common/elementwise.h"

/* -0 stays -0. */
HN_ANGLE_LOOP(x == 0 ? x : hn_angle_sine(x, 0), sinf)
HN_UNARY_LOOP(f64, double, double, sin(v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

HN_UNARY_PLAIN_OP(sin, "Sin", 7, HN_TYPES_FLOAT, NULL);
