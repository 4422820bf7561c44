/* Dropout: in inference the identity, with a mask of ones. In training an element is kept where a number
 * drawn from [0, 1) is not below the ratio, and scaled by 1 / (1 - ratio). The numbers are those of ONNX's
 * reference: MT19937, seeded with the attribute `seed`; without it others each time. */
#include "base/mersenne.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/common/elementwise.h"
#include "model/ops/random/random.h"

/* The ratio at which elements are dropped; 0: none. run: missing values are left out, not unknown. */
static hone_status ratio_of(const hone_node *node, const hone_tensor *const *value, uint32_t n, bool run,
                            double *ratio, hone_error *error) {
  *ratio = 0;
  if (hone_node_opset(node) < 12 || n < 3 || !value[2]) return HONE_OK;
  if (hn_count(value[2]) != 1) return hn_op_bad(node, error, "training_mode must be one value");
  if (!hn_get_i64(value[2], 0) || (!value[1] && !run && n > 1)) return HONE_OK;
  if (value[1] && hn_count(value[1]) != 1) return hn_op_bad(node, error, "ratio must be one value");
  *ratio = value[1] ? hn_get_f64(value[1], 0) : 0.5;
  return *ratio >= 0 && *ratio < 1 ? HONE_OK : hn_op_bad(node, error, "ratio is %g, not in [0, 1)", *ratio);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  double ratio;
  /* Left out, the outputs say it, as those of BatchNormalization do: the test mode makes no mask. */
  if (hone_node_opset(io->node) < 7 && !hone_node_int(io->node, "is_test", io->n_outputs == 1))
    return hn_op_refuse(io->node, error, "training (is_test is 0)");
  hone_status s = ratio_of(io->node, io->value, io->n_inputs, false, &ratio, error);
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  hn_infer_set(io, 1, hone_node_opset(io->node) < 10 ? x->dtype : HONE_DTYPE_BOOL, x->rank, x->dim);
  return HONE_OK;
}

static hone_status drop(hone_call *call, double ratio, hone_tensor *y, hone_tensor *mask, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hn_mt draw;
  if (hone_node_has(call->node, "seed")) {
    hn_mt_seed(&draw, (uint64_t)hone_node_int(call->node, "seed", 0));
  } else {
    hn_rng any = hn_random_start(call->node);
    hn_mt_seed(&draw, hn_rng_u64(&any));
  }
  const double scale = 1 / (1 - ratio);
  for (int64_t i = 0, n = hn_count(x); i < n; i++) {
    const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    const bool kept = hn_mt_res53(&draw) >= ratio;
    if (y) hn_set_f64(y, i, kept ? hn_get_f64(x, i) * scale : 0);
    if (mask) hn_set_f64(mask, i, kept);
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0], *mask = call->n_outputs > 1 ? call->output[1] : NULL;
  double ratio;
  hone_status s = ratio_of(call->node, call->input, call->n_inputs, true, &ratio, error);
  if (s) return s;
  if (ratio > 0) return drop(call, ratio, y, mask, error);
  const int64_t n = hn_count(x);
  if (y) hn_copy_elements(y->data, x->data, n, x->desc.dtype);
  for (int64_t i = 0; mask && i < n; i++) hn_set_f64(mask, i, 1);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{"ratio", HONE_ATTR_FLOAT, false, 0, 11},
                                       {"is_test", HONE_ATTR_INT, false, 0, 6},
                                       {"seed", HONE_ATTR_INT, false, 12, 0},
                                       HN_CONSUMED_INPUTS,
                                       {0}};

HN_OP(dropout) = {HN_OP_HEAD,
                  .op_type = "Dropout",
                  .since = 1,
                  HN_INPUTS(1, 3),
                  HN_OUTPUTS(1, 2),
                  .types = HN_TYPES_FLOAT,
                  .attrs = attrs,
                  .infer = infer,
                  .reference = reference,
                  .host_inputs = 1u << 1 | 1u << 2};
