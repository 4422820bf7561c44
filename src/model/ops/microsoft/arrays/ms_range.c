/* Range, as ONNX has it at opset 11, whose delta may be left out: it is 1. */
#include "model/ops/microsoft/common/inner.h"

enum { START, LIMIT, DELTA, ALL };

extern const hone_op_desc hn_op_range;

static bool one_of(hone_dtype t, double *room) {
  hone_tensor one = {hone_desc(t, 0, NULL), room};
  if (hone_dtype_is_float(t))
    hn_set_f64(&one, 0, 1);
  else
    hn_set_i64(&one, 0, 1);
  return true;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner n;
  hn_inner_begin(&n, io->node, &hn_op_range, 11);
  if (!hn_has_input(io, LIMIT)) return hn_op_bad(io->node, error, "there is no limit");
  double room = 0;
  hone_tensor delta = {hone_desc(io->input[START]->dtype, 0, NULL), &room};
  const hone_tensor_desc *in[ALL] = {io->input[START], io->input[LIMIT], &delta.desc};
  const hone_tensor *value[ALL] = {io->value[START], io->value[LIMIT], NULL};
  if (hn_has_input(io, DELTA)) {
    in[DELTA] = io->input[DELTA];
    value[DELTA] = io->value[DELTA];
  } else if (delta.desc.dtype && one_of(delta.desc.dtype, &room)) {
    value[DELTA] = &delta;
  }
  return hn_inner_infer(&(hone_infer){&n.node, ALL, io->n_outputs, in, value, io->output}, &n, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner n;
  hn_inner_begin(&n, call->node, &hn_op_range, 11);
  double room = 0;
  hone_tensor delta = {hone_desc(call->input[START]->desc.dtype, 0, NULL), &room};
  one_of(delta.desc.dtype, &room);
  const hone_tensor *in[ALL] = {call->input[START], call->input[LIMIT],
                                hn_call_has(call, DELTA) ? call->input[DELTA] : &delta};
  return hn_inner_run(call, &n, in, ALL, call->output, 1, error);
}

HN_OP(ms_range) = {HONE_DESC_HEAD(hone_op_desc),
                   .domain = "com.microsoft",
                   .op_type = "Range",
                   .since = 1,
                   HN_INPUTS(2, 3),
                   HN_OUTPUTS(1, 1),
                   .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) |
                            HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_I32) |
                            HONE_TYPES(HONE_DTYPE_I64),
                   .infer = infer,
                   .reference = reference,
                   .host_inputs = 1u << START | 1u << LIMIT | 1u << DELTA};
