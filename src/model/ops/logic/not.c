/* Not: logical negation. */
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(bool, uint8_t, uint8_t, v == 0)
static const hn_unary_loops loops = {.of = {[HONE_DTYPE_BOOL] = loop_bool}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(not ) = {HN_OP_HEAD,
               .op_type = "Not",
               .since = 1,
               HN_UNARY_ARITY,
               .types = HN_TYPES_BOOL,
               .infer = hn_infer_same,
               .reference = reference,
               .function = HN_FUNCTION(HONE_PW_NOT, 1)};
