/* DequantizeLinear: (x - zero_point) * scale, per tensor, per axis or blocked. */
#include "model/ops/quantized/quant.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *zero = hn_has_input(io, 2) ? io->input[2] : NULL;
  int64_t named = hone_node_int(io->node, "output_dtype", 0);
  hone_dtype out = named ? (hone_dtype)named : io->input[1]->dtype;
  hn_quant_map map;
  hone_status s = hn_infer_dtype_in(io, 1, HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_F8E8M0), error);
  if (!s) s = hn_infer_same_dtype(io, 0, 2, error);
  if (s) return s;
  if (out != HONE_DTYPE_NONE && !hone_dtype_is_float(out))
    return hn_op_refuse(io->node, error, "output dtype number %d", (int)out);
  if ((s = hn_quant_map_init(&map, io->node, x, io->input[1], zero, error))) return s;
  hn_infer_set(io, 0, out, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  enum { CHUNK = 256 };
  const hone_tensor *x = call->input[0], *scale = call->input[1],
                    *zero = hn_call_has(call, 2) ? call->input[2] : NULL;
  double v[CHUNK];
  hn_quant_map m;
  hone_status s = hn_quant_map_init(&m, call->node, &x->desc, &scale->desc, zero ? &zero->desc : NULL, error);
  if (s) return s;
  for (int64_t o = 0; o < m.outer; o++)
    for (int64_t a = 0; a < m.axis; a++)
      for (int64_t i = 0; i < m.inner; i += CHUNK) {
        int64_t n = hn_min(CHUNK, m.inner - i), at = (o * m.axis + a) * m.inner + i;
        double by = 1, shift = 0;
        hn_load_f64(v, x, at, n);
        for (int64_t j = 0; j < n; j++) {
          if (j == 0 || m.kind == HN_BLOCKED) {
            int64_t k = hn_quant_index(&m, o, a, i + j);
            by = hn_get_f64(scale, k);
            shift = zero ? hn_get_f64(zero, k) : 0;
          }
          v[j] = (v[j] - shift) * by;
        }
        hn_store_f64(call->output[0], at, v, n);
      }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 2 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"axis", HONE_ATTR_INT, false, 13, 0},
                                       {"block_size", HONE_ATTR_INT, false, 21, 0},
                                       {"output_dtype", HONE_ATTR_INT, false, 23, 0},
                                       {0}};

static const hone_codes_port ports[] = {{0, 1, 2, HONE_CODES_AXIS_ATTRIBUTE}, {0}};

HN_OP(dequantize_linear) = {HN_OP_HEAD,
                            .op_type = "DequantizeLinear",
                            .since = 10,
                            HN_INPUTS(2, 3),
                            HN_OUTPUTS(1, 1),
                            .types = HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8) |
                                     HONE_TYPES(HONE_DTYPE_U16) | HONE_TYPES(HONE_DTYPE_I16) |
                                     HONE_TYPES(HONE_DTYPE_I32) | HN_TYPES_NARROW_CODE,
                            .attrs = attrs,
                            .infer = infer,
                            .cost = cost,
                            .reference = reference,
                            .flags = HONE_OP_CODES,
                            .layouts = HONE_LAST_ALLOWED,
                            .ports = ports};
