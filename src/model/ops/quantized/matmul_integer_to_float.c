/* MatMulIntegerToFloat: (a - a_zero) (b - b_zero) a_scale b_scale + bias in f32; scale, zero point and bias
 * of b are one number, or one a column. */
#include "model/ops/product/batch.h"
#include "model/ops/quantized/integer_matmul.h"

enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS };

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status s = hn_infer_dtype_in(io, A_SCALE, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_same_dtype(io, A, A_ZERO, error);
  for (uint32_t i = A_SCALE; i <= A_ZERO && !s; i += A_ZERO - A_SCALE)
    if (hn_has_input(io, i) && hone_desc_count(io->input[i]) > 1)
      s = hn_op_refuse(io->node, error, "a scale or zero point a row of A");
  return s ? s : hn_integer_matmul_infer(io, B, B_SCALE, B_ZERO, BIAS, error);
}

static void cost(const hone_infer *io, hone_cost *c) { hn_batch_cost(io, A, B, c); }

static hone_status reference(hone_call *call, hone_error *error) {
  const hn_integer_matmul p = {
      .a = call->input[A],
      .b = call->input[B],
      .b_scale = call->input[B_SCALE],
      .b_zero = hn_call_has(call, B_ZERO) ? call->input[B_ZERO] : NULL,
      .bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL,
      .a_scale = (float)hn_get_f64(call->input[A_SCALE], 0),
      .a_zero = hn_call_has(call, A_ZERO) ? (int32_t)hn_get_i64(call->input[A_ZERO], 0) : 0};
  return hn_integer_matmul_run(call, &p, call->output[0]->data, error);
}

static const hone_codes_port ports[] = {
    {A, A_SCALE, A_ZERO, HONE_CODES_AXIS_NONE}, {B, B_SCALE, B_ZERO, HONE_CODES_AXIS_COLUMN}, {0}};

HN_OP(matmul_integer_to_float) = {HONE_DESC_HEAD(hone_op_desc),
                                  .domain = "com.microsoft",
                                  .op_type = "MatMulIntegerToFloat",
                                  .since = 1,
                                  HN_INPUTS(4, 7),
                                  HN_OUTPUTS(1, 1),
                                  .types = HN_TYPES_8BIT,
                                  .infer = infer,
                                  .cost = cost,
                                  .reference = reference,
                                  .flags = HONE_OP_CODES,
                                  .ports = ports};
