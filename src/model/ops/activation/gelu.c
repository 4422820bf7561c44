/* Gelu: x times the normal distribution's cumulative function, exact or by its tanh approximation. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS((T)0.5 * v * ((T)1 + erf(v * (T)0.70710678118654752440)))
static const hn_unary_loops exact = HN_UNARY_FLOAT_TABLE;

HN_UNARY_LOOP(tanh_f32, float, float,
              (T)0.5 * v * ((T)1 + tanh((T)0.79788456080286535588 * (v + (T)0.044715 * v * v * v))))
HN_UNARY_LOOP(tanh_f64, double, double,
              (T)0.5 * v * ((T)1 + tanh((T)0.79788456080286535588 * (v + (T)0.044715 * v * v * v))))
static const hn_unary_loops approximate = {
    .of = {[HONE_DTYPE_F32] = loop_tanh_f32, [HONE_DTYPE_F64] = loop_tanh_f64}};

static hone_status reference(hone_call *call, hone_error *error) {
  bool by_tanh = strcmp(hone_node_string(call->node, "approximate", "none"), "tanh") == 0;
  return hn_unary(call, by_tanh ? &approximate : &exact, NULL, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const char *kind = hone_node_string(io->node, "approximate", "none");
  if (strcmp(kind, "none") && strcmp(kind, "tanh"))
    return hn_op_bad(io->node, error, "approximate is '%s'", kind);
  return hn_infer_same(io, error);
}

static const hone_attr_desc attrs[] = {{.name = "approximate", .type = HONE_ATTR_STRING}, {0}};

static bool function(const hone_infer *io, hone_pw_instr *instr) {
  if (strcmp(hone_node_string(io->node, "approximate", "none"), "tanh") == 0) instr->op = HONE_PW_GELU_TANH;
  return true;
}

HN_OP(gelu) = {HN_OP_HEAD,
               .op_type = "Gelu",
               .since = 20,
               HN_UNARY_ARITY,
               .types = HN_TYPES_FLOAT,
               .attrs = attrs,
               .infer = infer,
               .reference = reference,
               .function = &(const hone_function){.op = HONE_PW_GELU_ERF, .operands = 1, .read = function}};
