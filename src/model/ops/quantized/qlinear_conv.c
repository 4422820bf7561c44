/* QLinearConv: exact integer sums (plus an i32 bias), then y = saturate(round(sum * x_scale * w_scale /
 * y_scale) + zero). The rescaling is done in f32, as everywhere: at ties double would round the other way. */
#include "model/ops/quantized/quant_conv.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *w = io->input[W];
  int64_t filters = w->rank > 0 ? w->dim[0] : HONE_DIM_UNKNOWN;
  static const uint32_t single[] = {X_SCALE, X_ZERO, Y_SCALE, Y_ZERO};
  hone_status s = hn_infer_dtype_in(io, W, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_dtype_in(io, Y_ZERO, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_same_dtype(io, X, X_ZERO, error);
  if (!s) s = hn_infer_same_dtype(io, W, W_ZERO, error);
  for (size_t i = 0; i < sizeof single / sizeof *single && !s; i++)
    s = hn_infer_quant_param(io, single[i], 1, error);
  if (!s) s = hn_infer_quant_param(io, W_SCALE, filters, error);
  if (!s) s = hn_infer_quant_param(io, W_ZERO, filters, error);
  if (!s) s = hn_infer_dtype_in(io, BIAS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s) s = hn_infer_vector(io, BIAS, filters, error);
  return s ? s : hn_conv_infer(io, W, io->input[Y_ZERO]->dtype, error);
}

typedef struct sink_arg {
  hone_tensor *y;
  const hone_tensor *bias;
  int64_t filters, plane;
  float x_scale, y_scale;
  hn_quant_param w_scale;
  double zero, lo, hi;
} sink_arg;

static void sink(void *arg, int64_t n, int64_t m, int64_t at, const double *acc, int64_t count) {
  sink_arg *s = arg;
  float scale = s->x_scale * (float)hn_quant_at(s->w_scale, m) / s->y_scale;
  double bias = s->bias ? hn_get_f64(s->bias, m) : 0;
  int64_t base = (n * s->filters + m) * s->plane + at;
  enum { CHUNK = 256 };
  double q[CHUNK];
  for (int64_t i = 0; i < count; i += CHUNK) {
    int64_t part = hn_min(CHUNK, count - i);
    for (int64_t j = 0; j < part; j++)
      q[j] = hn_saturate((double)rintf((float)(acc[i + j] + bias) * scale) + s->zero, s->lo, s->hi);
    hn_store_f64(s->y, base + i, q, part);
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  sink_arg arg = {.y = y,
                  .bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL,
                  .filters = y->desc.dim[1],
                  .plane = hn_dims(&y->desc, 2, y->desc.rank),
                  .x_scale = (float)hn_get_f64(call->input[X_SCALE], 0),
                  .y_scale = (float)hn_get_f64(call->input[Y_SCALE], 0),
                  .w_scale = hn_quant_param_of(call->input[W_SCALE]),
                  .zero = hn_get_f64(call->input[Y_ZERO], 0)};
  if (!hn_quant_range(y->desc.dtype, &arg.lo, &arg.hi))
    return hn_op_refuse(call->node, error, "the output dtype");
  return hn_quant_conv(call, W, call->input[X_ZERO], call->input[W_ZERO], sink, &arg, error);
}

static void cost(const hone_infer *io, hone_cost *cost) { hn_conv_cost(io, W, cost); }

static const hone_attr_desc attrs[] = {HN_CONV_ATTRS, {0}};

static const hone_codes_port ports[] = {{X, X_SCALE, X_ZERO, HONE_CODES_AXIS_NONE},
                                        {W, W_SCALE, W_ZERO, HONE_CODES_AXIS_FIRST},
                                        {HONE_CODES_RESULT, Y_SCALE, Y_ZERO, HONE_CODES_AXIS_NONE},
                                        {0}};

HN_OP(qlinear_conv) = {HN_OP_HEAD,
                       .op_type = "QLinearConv",
                       .since = 10,
                       HN_INPUTS(8, 9),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_8BIT,
                       .attrs = attrs,
                       .infer = infer,
                       .cost = cost,
                       .reference = reference,
                       .flags = HONE_OP_CODES,
                       .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
                       .ports = ports};
