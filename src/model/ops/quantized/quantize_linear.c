/* QuantizeLinear: saturate(round_half_even(x / scale) + zero_point), per tensor, per axis or blocked. The
 * division is done in f32, as the definition's x and scale are: at ties a double quotient would round the
 * other way. */
#include "model/ops/quantized/quant.h"

static const uint32_t result_types = HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8) |
                                     HONE_TYPES(HONE_DTYPE_U16) | HONE_TYPES(HONE_DTYPE_I16) |
                                     HN_TYPES_NARROW_CODE;

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *zero = hn_has_input(io, 2) ? io->input[2] : NULL;
  int64_t named = hone_node_int(io->node, "output_dtype", 0);
  int64_t precision = hone_node_int(io->node, "precision", 0);
  hone_dtype out = zero ? zero->dtype : named ? (hone_dtype)named : HONE_DTYPE_U8;
  hn_quant_map map;
  hone_status s = hn_infer_dtype_in(
      io, 1, HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_F8E8M0), error);
  if (s) return s;
  if (precision && precision != HONE_DTYPE_F32)
    return hn_op_refuse(io->node, error, "precision %lld", (long long)precision);
  if (zero && named && zero->dtype != HONE_DTYPE_NONE && zero->dtype != (hone_dtype)named)
    return hn_op_bad(io->node, error, "output_dtype and the zero point's dtype differ");
  if (out != HONE_DTYPE_NONE && (named < 0 || out >= HONE_DTYPE_COUNT || !(result_types & HONE_TYPES(out))))
    return hn_op_refuse(io->node, error, "output dtype %s (number %d)", hone_dtype_name(out), (int)out);
  if ((s = hn_quant_map_init(&map, io->node, x, io->input[1], zero, error))) return s;
  hn_infer_set(io, 0, out, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  enum { CHUNK = 256 };
  const hone_tensor *x = call->input[0], *scale = call->input[1],
                    *zero = hn_call_has(call, 2) ? call->input[2] : NULL;
  hone_tensor *y = call->output[0];
  float v[CHUNK];
  double q[CHUNK], lo, hi;
  hn_quant_map m;
  hone_status s = hn_quant_map_init(&m, call->node, &x->desc, &scale->desc, zero ? &zero->desc : NULL, error);
  if (s) return s;
  const bool real = hn_narrow_is_float(y->desc.dtype);
  const hn_narrow_rule rule = {.overflow = !hone_node_int(call->node, "saturate", 1)};
  if (!real && !hn_quant_range(y->desc.dtype, &lo, &hi))
    return hn_op_refuse(call->node, error, "the output dtype");
  for (int64_t o = 0; o < m.outer; o++)
    for (int64_t a = 0; a < m.axis; a++)
      for (int64_t i = 0; i < m.inner; i += CHUNK) {
        int64_t n = hn_min(CHUNK, m.inner - i), at = (o * m.axis + a) * m.inner + i, k = -1;
        float by = 1;
        double shift = 0;
        hn_load_f32(v, x, at, n);
        for (int64_t j = 0; j < n; j++) {
          if (j == 0 || m.kind == HN_BLOCKED) {
            k = hn_quant_index(&m, o, a, i + j);
            by = (float)hn_get_f64(scale, k);
            shift = zero ? hn_get_f64(zero, k) : 0;
          }
          if (real)
            ((uint8_t *)y->data)[at + j] =
                hn_narrow_from_f64(y->desc.dtype, (double)(v[j] / by) + shift, rule);
          else
            q[j] = hn_saturate((double)rintf(v[j] / by) + shift, lo, hi);
        }
        if (!real) hn_store_f64(y, at, q, n);
      }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 3 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {
    {"axis", HONE_ATTR_INT, false, 13, 0},
    {"saturate", HONE_ATTR_INT, false, 19, 0}, /* matters for 8-bit floats alone */
    {"block_size", HONE_ATTR_INT, false, 21, 0},
    {"output_dtype", HONE_ATTR_INT, false, 21, 0},
    {"precision", HONE_ATTR_INT, false, 23, 0},
    {0}};

static const hone_codes_port ports[] = {{HONE_CODES_RESULT, 1, 2, HONE_CODES_AXIS_ATTRIBUTE}, {0}};

HN_OP(quantize_linear) = {HN_OP_HEAD,
                          .op_type = "QuantizeLinear",
                          .since = 10,
                          HN_INPUTS(2, 3),
                          HN_OUTPUTS(1, 1),
                          .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16) |
                                   HONE_TYPES(HONE_DTYPE_BF16) | HONE_TYPES(HONE_DTYPE_I32),
                          .attrs = attrs,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference,
                          .layouts = HONE_LAST_ALLOWED,
                          .ports = ports};
