/* BiasGelu: Gelu(x + bias). */
#include "model/ops/microsoft/activations/biased.h"

#define GELU(v) ((W)0.5 * (v) * ((W)1 + erf((v) * (W)0.70710678118654752440)))
HN_BINARY_FLOAT_LOOPS(GELU(x + y))
static const hn_binary_loops biased = {.of = {[HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_biased_run(call, NULL, &biased, error);
}

HN_OP(bias_gelu) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "BiasGelu",
                    .since = 1,
                    HN_BINARY_ARITY,
                    .types = HN_TYPES_FLOAT,
                    .infer = hn_biased_infer,
                    .reference = reference};
