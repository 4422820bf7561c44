/* Mean: all operands added and divided by their number. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x + y)
static const hn_binary_loops sums = {.of = {[HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64}};

HN_BINARY_LOOP(over_f32, float, float, float, x / y)
HN_BINARY_LOOP(over_f64, double, double, double, x / y)

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  hone_status status = hn_variadic_run(call, &sums, error);
  if (status) return status;
  double count[1];
  hn_write_f64(count, y->desc.dtype, 0, &(double){call->n_inputs}, 1);
  hone_tensor_desc one = hone_desc(y->desc.dtype, 0, NULL);
  hn_binary_loop over = y->desc.dtype == HONE_DTYPE_F64 ? loop_over_f64 : loop_over_f32;
  return hn_binary_apply(call, over, &y->desc, y->data, &one, count, y, error);
}

static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};

HN_OP(mean) = {HN_OP_HEAD,
               .op_type = "Mean",
               .since = 1,
               HN_VARIADIC_ARITY,
               .types = HN_TYPES_FLOAT,
               .attrs = attrs,
               .infer = hn_infer_variadic,
               .cost = hn_variadic_cost,
               .reference = reference};
