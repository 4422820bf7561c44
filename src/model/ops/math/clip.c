/* Clip: min(max(x, low), high); bounds are attributes before opset 11, then optional scalars (common/clip.h).
 */
#include "model/ops/math/clip_bounds.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  for (uint32_t i = 1; i < 3 && i < io->n_inputs; i++) {
    const hone_tensor_desc *b = io->input[i];
    if (!b) continue;
    if (hone_node_opset(io->node) < 11)
      return hn_op_bad(io->node, error, "bounds are attributes before opset 11");
    if (b->dtype && io->input[0]->dtype && b->dtype != io->input[0]->dtype)
      return hn_op_bad(io->node, error, "bound is %s, x is %s", hone_dtype_name(b->dtype),
                       hone_dtype_name(io->input[0]->dtype));
    if (hone_desc_known(b) && hone_desc_count(b) != 1)
      return hn_op_bad(io->node, error, "a bound has %lld elements", (long long)hone_desc_count(b));
  }
  return hn_infer_same(io, error);
}

#define CLIP(T, low, high)                                                                                   \
  {                                                                                                          \
    const T least = (low), most = (high), *x = hn_at(call->input[0], i);                                     \
    T *y = hn_at_mut(call->output[0], i);                                                                    \
    for (int64_t j = 0; j < m; j++) {                                                                        \
      T v = x[j];                                                                                            \
      v = v < least ? least : v;                                                                             \
      y[j] = v > most ? most : v;                                                                            \
    }                                                                                                        \
  }
#define CLIP_INT(T, min, max)                                                                                \
  CLIP(T, low ? ((const T *)low->data)[0] : min, high ? ((const T *)high->data)[0] : max)

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *low = hn_call_has(call, 1) ? call->input[1] : NULL,
                    *high = hn_call_has(call, 2) ? call->input[2] : NULL;
  hone_dtype t = call->input[0]->desc.dtype;
  double lo, hi;
  hn_clip_bounds(call->node, low, high, &lo, &hi);
  enum { BLOCK = 1024 };
  for (int64_t i = 0, n = hn_count(call->input[0]); i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    if (i % HN_STOP_EVERY == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
    switch (t) {
    case HONE_DTYPE_F32: CLIP(float, (float)lo, (float)hi) break;
    case HONE_DTYPE_F64: CLIP(double, lo, hi) break;
    case HONE_DTYPE_F16:
    case HONE_DTYPE_BF16: {
      float b[BLOCK];
      hn_read_f32(b, call->input[0]->data, t, i, m);
      for (int64_t j = 0; j < m; j++) {
        float v = b[j] < (float)lo ? (float)lo : b[j];
        b[j] = v > (float)hi ? (float)hi : v;
      }
      hn_write_f32(call->output[0]->data, t, i, b, m);
      break;
    }
    case HONE_DTYPE_I8: CLIP_INT(int8_t, INT8_MIN, INT8_MAX) break;
    case HONE_DTYPE_I16: CLIP_INT(int16_t, INT16_MIN, INT16_MAX) break;
    case HONE_DTYPE_I32: CLIP_INT(int32_t, INT32_MIN, INT32_MAX) break;
    case HONE_DTYPE_I64: CLIP_INT(int64_t, INT64_MIN, INT64_MAX) break;
    case HONE_DTYPE_U8: CLIP_INT(uint8_t, 0, UINT8_MAX) break;
    case HONE_DTYPE_U16: CLIP_INT(uint16_t, 0, UINT16_MAX) break;
    case HONE_DTYPE_U32: CLIP_INT(uint32_t, 0, UINT32_MAX) break;
    case HONE_DTYPE_U64: CLIP_INT(uint64_t, 0, UINT64_MAX) break;
    default: return hn_op_refuse(call->node, error, "dtype %s", hone_dtype_name(t));
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "min", .type = HONE_ATTR_FLOAT, .until = 10},
                                       {.name = "max", .type = HONE_ATTR_FLOAT, .until = 10},
                                       {.name = "consumed_inputs", .type = HONE_ATTR_INTS, .until = 5},
                                       {0}};

/* Bounds that are known, in the order that the function needs; others are left to the reference. */
static bool function(const hone_infer *io, hone_pw_instr *instr) {
  const hone_tensor *bound[2] = {NULL, NULL};
  double low, high;
  for (uint32_t i = 1; i <= 2 && i < io->n_inputs; i++) {
    const hone_tensor *b = bound[i - 1] = io->input[i] ? io->value[i] : NULL;
    if (io->input[i] && (!b || b->desc.dtype != HONE_DTYPE_F32 || hone_desc_count(&b->desc) != 1))
      return false;
  }
  hn_clip_bounds(io->node, bound[0], bound[1], &low, &high);
  instr->alpha = (float)low;
  instr->beta = (float)high;
  return low <= high;
}

HN_OP(clip) = {HN_OP_HEAD,
               .op_type = "Clip",
               .since = 1,
               .flags = HONE_OP_POINTWISE,
               HN_INPUTS(1, 3),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_NUMBER,
               .attrs = attrs,
               .infer = infer,
               .reference = reference,
               .function = &(const hone_function){.op = HONE_PW_CLIP, .operands = 1, .read = function}};
