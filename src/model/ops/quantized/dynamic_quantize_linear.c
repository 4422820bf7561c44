/* DynamicQuantizeLinear: finds scale and zero point of u8 for the data at hand (zero always representable),
 * then quantises. All arithmetic is f32, as the definition's. */
#include "model/ops/quantized/dynamic.h"

#include "model/ops/quantized/quant.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  hn_infer_set(io, 0, HONE_DTYPE_U8, io->input[0]->rank, io->input[0]->dim);
  hn_infer_set(io, 1, HONE_DTYPE_F32, 0, NULL);
  hn_infer_set(io, 2, HONE_DTYPE_U8, 0, NULL);
  return HONE_OK;
}

void hn_quantise_dynamically(const float *x, int64_t n, uint8_t *codes, float *scale, uint8_t *zero) {
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
  }
  *scale = (most - least) / 255;
  if (*scale == 0) *scale = 1; /* all zero: any scale will do */
  const float z = rintf((float)hn_saturate(0 - least / *scale, 0, 255));
  for (int64_t i = 0; codes && i < n; i++)
    codes[i] = (uint8_t)hn_saturate((double)rintf(x[i] / *scale) + z, 0, 255);
  *zero = (uint8_t)z;
}

static hone_status reference(hone_call *call, hone_error *error) {
  float scale;
  uint8_t zero;
  (void)error;
  hn_quantise_dynamically(call->input[0]->data, hn_count(call->input[0]),
                          call->output[0] ? call->output[0]->data : NULL, &scale, &zero);
  if (call->output[1]) *(float *)call->output[1]->data = scale;
  if (call->output[2]) *(uint8_t *)call->output[2]->data = zero;
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 5 * hn_known_count(io->input[0]));
}

HN_OP(dynamic_quantize_linear) = {HN_OP_HEAD,
                                  .op_type = "DynamicQuantizeLinear",
                                  .since = 11,
                                  HN_INPUTS(1, 1),
                                  HN_OUTPUTS(3, 3),
                                  .types = HONE_TYPES(HONE_DTYPE_F32),
                                  .infer = infer,
                                  .cost = cost,
                                  .reference = reference,
                                  .layouts = HONE_LAST_ALLOWED};
