/* DynamicQuantizeMatMul: A is quantised by its own range as DynamicQuantizeLinear does it, then multiplied as
 * MatMulIntegerToFloat does it. */
#include "model/ops/product/batch.h"
#include "model/ops/quantized/dynamic.h"
#include "model/ops/quantized/integer_matmul.h"

enum { A, B, B_SCALE, B_ZERO, BIAS };

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_integer_matmul_infer(io, B, B_SCALE, B_ZERO, BIAS, error);
}

static void cost(const hone_infer *io, hone_cost *c) { hn_batch_cost(io, A, B, c); }

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[A];
  const int64_t n = hn_count(x);
  uint8_t *codes = hn_scratch(call, n, 1, error), zero;
  if (!codes) return HONE_ERROR_MEMORY;
  hn_integer_matmul p = {.b = call->input[B],
                         .b_scale = call->input[B_SCALE],
                         .b_zero = hn_call_has(call, B_ZERO) ? call->input[B_ZERO] : NULL,
                         .bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL};
  hn_quantise_dynamically(x->data, n, codes, &p.a_scale, &zero);
  const hone_tensor a = {hone_desc(HONE_DTYPE_U8, x->desc.rank, x->desc.dim), codes};
  p.a = &a;
  p.a_zero = zero;
  return hn_integer_matmul_run(call, &p, call->output[0]->data, error);
}

static const hone_codes_port ports[] = {{B, B_SCALE, B_ZERO, HONE_CODES_AXIS_COLUMN}, {0}};

HN_OP(dynamic_quantize_matmul) = {HONE_DESC_HEAD(hone_op_desc),
                                  .domain = "com.microsoft",
                                  .op_type = "DynamicQuantizeMatMul",
                                  .since = 1,
                                  HN_INPUTS(3, 5),
                                  HN_OUTPUTS(1, 1),
                                  .types = HONE_TYPES(HONE_DTYPE_F32),
                                  .infer = infer,
                                  .cost = cost,
                                  .reference = reference,
                                  .flags = HONE_OP_CODES,
                                  .ports = ports};
