/* PRelu: x above zero, slope x below. The slope broadcasts to x; before opset 7 it holds one number, or one a
 * channel. One number is everybody's then, however many dimensions it has. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x < 0 ? x * y : x)
HN_BINARY_LOOP(i32, int32_t, int32_t, int32_t, x < 0 ? (uint32_t)x * (uint32_t)y : (uint32_t)x)
HN_BINARY_LOOP(i64, int64_t, int64_t, int64_t, x < 0 ? (uint64_t)x * (uint64_t)y : (uint64_t)x)
HN_BINARY_LOOP(u32, uint32_t, uint32_t, uint32_t, ((void)y, x))
HN_BINARY_LOOP(u64, uint64_t, uint64_t, uint64_t, ((void)y, x))
static const hn_binary_loops loops = {.of = {[HONE_DTYPE_F32] = loop_f32,
                                             [HONE_DTYPE_F64] = loop_f64,
                                             [HONE_DTYPE_I32] = loop_i32,
                                             [HONE_DTYPE_I64] = loop_i64,
                                             [HONE_DTYPE_U32] = loop_u32,
                                             [HONE_DTYPE_U64] = loop_u64}};

/* The slope as broadcasting wants it. */
static hone_tensor_desc slope_desc(const hone_node *node, const hone_tensor_desc *x,
                                   const hone_tensor_desc *slope) {
  hone_tensor_desc d = *slope;
  if (hone_node_opset(node) >= 7) return d;
  if (x->rank >= 0 && d.rank > x->rank && hone_desc_known(&d) && hone_desc_count(&d) == 1) d.rank = 0;
  if (x->rank < 2 || d.rank != 1 || d.dim[0] == 1) return d;
  d.rank = x->rank; /* one a channel: dimension 1 */
  for (int32_t i = 0; i < x->rank; i++) d.dim[i] = i == 1 ? slope->dim[0] : 1;
  return d;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *slope = io->input[1];
  if (x->dtype && slope->dtype && x->dtype != slope->dtype)
    return hn_op_bad(io->node, error, "x is %s, slope %s", hone_dtype_name(x->dtype),
                     hone_dtype_name(slope->dtype));
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  if (x->rank < 0 || slope->rank < 0) return HONE_OK;
  hone_tensor_desc s = slope_desc(io->node, x, slope);
  bool fits = s.rank <= x->rank;
  for (int32_t i = 0; fits && i < s.rank; i++) {
    int64_t d = x->dim[i + x->rank - s.rank];
    fits = s.dim[i] == 1 || s.dim[i] < 0 || d < 0 || s.dim[i] == d;
  }
  if (fits) return HONE_OK;
  char given[96], to[96];
  return hn_op_bad(io->node, error, "a slope of %s does not broadcast to x, %s",
                   hone_desc_format(slope, given, sizeof given), hone_desc_format(x, to, sizeof to));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *slope = call->input[1];
  hone_dtype t = x->desc.dtype;
  hn_binary_loop loop = loops.of[t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16 ? HONE_DTYPE_F32 : t];
  if (!loop) return hn_op_refuse(call->node, error, "dtype %s", hone_dtype_name(t));
  hone_tensor_desc s = slope_desc(call->node, &x->desc, &slope->desc);
  return hn_binary_apply(call, loop, &x->desc, x->data, &s, slope->data, call->output[0], error);
}

static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};

/* Only where the slope lies as broadcasting has it. */
static bool function(const hone_infer *io, hone_pw_instr *instr) {
  (void)instr;
  if (hone_node_opset(io->node) >= 7 || io->n_inputs != 2 || !io->input[0] || !io->input[1]) return true;
  const hone_tensor_desc *x = io->input[0], *slope = io->input[1];
  if (slope->rank > 1 && x->rank < slope->rank) return false; /* or x is of unknown rank */
  return (x->rank >= 0 && x->rank <= 2) || (slope->rank >= 0 && (slope->rank != 1 || slope->dim[0] == 1));
}

HN_OP(prelu) = {HN_OP_HEAD,
                .op_type = "PRelu",
                .since = 1,
                HN_BINARY_ARITY,
                .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) |
                         HONE_TYPES(HONE_DTYPE_U32) | HONE_TYPES(HONE_DTYPE_U64),
                .attrs = attrs,
                .infer = infer,
                .reference = reference,
                .function = &(const hone_function){.op = HONE_PW_PRELU, .operands = 2, .read = function}};
