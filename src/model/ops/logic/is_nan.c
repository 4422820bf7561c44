/* IsNaN: true where an element is not a number. */
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(f32, float, uint8_t, v != v)
HN_UNARY_LOOP(f64, double, uint8_t, v != v)
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(is_nan) = {HN_OP_HEAD,
                 .op_type = "IsNaN",
                 .since = 9,
                 HN_UNARY_ARITY,
                 .types = HN_TYPES_FLOAT,
                 .infer = hn_infer_test,
                 .reference = reference};
