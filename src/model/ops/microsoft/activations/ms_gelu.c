/* Gelu: 0.5 x (1 + erf(x / sqrt 2)), as ONNX has it since opset 20. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS((T)0.5 * v * ((T)1 + erf(v * (T)0.70710678118654752440)))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(ms_gelu) = {HONE_DESC_HEAD(hone_op_desc),
                  .domain = "com.microsoft",
                  .op_type = "Gelu",
                  .since = 1,
                  HN_UNARY_ARITY,
                  .types = HN_TYPES_FLOAT,
                  .infer = hn_infer_same,
                  .reference = reference,
                  .function = HN_FUNCTION(HONE_PW_GELU_ERF, 1)};
