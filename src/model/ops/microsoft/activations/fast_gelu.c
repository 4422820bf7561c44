/* FastGelu: Gelu by its tanh approximation, of x + bias where a bias is given. */
#include "model/ops/microsoft/activations/biased.h"

#define GELU(v)                                                                                              \
  ((W)0.5 * (v) * ((W)1 + tanh((W)0.79788456080286535588 * ((v) + (W)0.044715 * (v) * (v) * (v)))))
HN_BINARY_FLOAT_LOOPS(GELU(x + y))
static const hn_binary_loops biased = {.of = {[HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64}};

#define W T
HN_UNARY_LOOP(plain_f32, float, float, GELU(v))
HN_UNARY_LOOP(plain_f64, double, double, GELU(v))
#undef W
static const hn_unary_loops loops = {
    .of = {[HONE_DTYPE_F32] = loop_plain_f32, [HONE_DTYPE_F64] = loop_plain_f64}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_biased_run(call, &loops, &biased, error);
}

/* With a bias it is a function of two operands, which programs do not have. */
static bool function(const hone_infer *io, hone_pw_instr *instr) {
  (void)instr;
  return !hn_has_input(io, 1);
}

HN_OP(fast_gelu) = {
    HONE_DESC_HEAD(hone_op_desc),
    .domain = "com.microsoft",
    .op_type = "FastGelu",
    .since = 1,
    HN_INPUTS(1, 2),
    HN_OUTPUTS(1, 1),
    .flags = HONE_OP_POINTWISE,
    .types = HN_TYPES_FLOAT,
    .infer = hn_biased_infer,
    .reference = reference,
    .function = &(const hone_function){.op = HONE_PW_GELU_TANH, .operands = 1, .read = function}};
