/* Dropout in inference: the identity, with a mask of ones. Training with a ratio above 0 draws random numbers
 * that the definition leaves open, so it is refused. */
#include "model/ops/common/bulk.h"

static hone_status check(const hone_node *node, const hone_tensor *const *value, uint32_t n, bool run,
                         hone_error *error) {
  if (hone_node_opset(node) < 7 && !hone_node_int(node, "is_test", 0))
    return hn_op_refuse(node, error, "training (is_test is 0)");
  if (hone_node_opset(node) < 12 || n < 3 || !value[2]) return HONE_OK;
  if (hn_count(value[2]) != 1) return hn_op_bad(node, error, "training_mode must be one value");
  if (!hn_get_i64(value[2], 0)) return HONE_OK;
  if (!value[1] && !run && n > 1) return HONE_OK; /* perhaps 0 when it runs */
  if (value[1] && hn_count(value[1]) != 1) return hn_op_bad(node, error, "ratio must be one value");
  double ratio = value[1] ? hn_get_f64(value[1], 0) : 0.5;
  return ratio == 0 ? HONE_OK : hn_op_refuse(node, error, "training with ratio %g is random", ratio);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_status s = check(io->node, io->value, io->n_inputs, false, error);
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  hn_infer_set(io, 1, hone_node_opset(io->node) < 10 ? x->dtype : HONE_DTYPE_BOOL, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_status s = check(call->node, call->input, call->n_inputs, true, error);
  if (s) return s;
  int64_t n = hn_count(x);
  if (call->output[0]) hn_copy_elements(call->output[0]->data, x->data, n, x->desc.dtype);
  if (call->n_outputs > 1 && call->output[1])
    for (int64_t i = 0; i < n; i++) hn_set_f64(call->output[1], i, 1);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"ratio", HONE_ATTR_FLOAT, false, 0, 11},
                                       {"is_test", HONE_ATTR_INT, false, 0, 6},
                                       {"seed", HONE_ATTR_INT, false, 12, 0},
                                       {0}};

HN_OP(dropout) = {HN_OP_HEAD,
                  .op_type = "Dropout",
                  .since = 6,
                  HN_INPUTS(1, 3),
                  HN_OUTPUTS(1, 2),
                  .types = HN_TYPES_FLOAT,
                  .attrs = attrs,
                  .infer = infer,
                  .reference = reference,
                  .host_inputs = 1u << 1 | 1u << 2};
