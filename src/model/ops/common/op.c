#include "model/ops/common/op.h"

#include "model/ir/graph.h"

#include <stdarg.h>
#include <stdio.h>

/* ------------------------------------------------------------------ errors */

static hone_status op_fail(hone_status status, const hone_node *node, hone_error *error, const char *format,
                           va_list ap) {
  char text[256];
  vsnprintf(text, sizeof text, format, ap);
  hn_fail(error, status, "%s: %s", hone_node_op(node), text);
  hn_error_where(error, "node '%s' (%s)", hone_node_name(node), hone_node_op(node));
  return status;
}

hone_status hn_op_bad(const hone_node *node, hone_error *error, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  hone_status s = op_fail(HONE_ERROR_INPUT, node, error, format, ap);
  va_end(ap);
  return s;
}

hone_status hn_op_refuse(const hone_node *node, hone_error *error, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  hone_status s = op_fail(HONE_ERROR_UNSUPPORTED, node, error, format, ap);
  va_end(ap);
  return s;
}

/* ------------------------------------------------------------------ inference */

void hn_infer_set(const hone_infer *io, uint32_t i, hone_dtype dtype, int32_t rank, const int64_t *dims) {
  if (i >= io->n_outputs || !io->output[i]) return;
  hone_tensor_desc *d = io->output[i];
  d->dtype = dtype;
  d->rank = rank;
  for (int32_t k = 0; k < rank; k++) d->dim[k] = dims[k];
}

hone_status hn_infer_same(const hone_infer *io, hone_error *error) {
  (void)error;
  hn_infer_set(io, 0, io->input[0]->dtype, io->input[0]->rank, io->input[0]->dim);
  return HONE_OK;
}

hone_status hn_broadcast_dims(hone_tensor_desc *a, const hone_tensor_desc *b, hone_error *error) {
  if (a->rank < 0 || b->rank < 0) {
    a->rank = -1;
    return HONE_OK;
  }
  int32_t rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) {
    int32_t ia = i - (rank - a->rank), ib = i - (rank - b->rank);
    int64_t x = ia < 0 ? 1 : a->dim[ia], y = ib < 0 ? 1 : b->dim[ib];
    if (x == y || y == 1)
      dim[i] = x;
    else if (x == 1)
      dim[i] = y;
    else if (x < 0)
      dim[i] = y < 0 ? HONE_DIM_UNKNOWN : y;
    else if (y < 0)
      dim[i] = x;
    else {
      char sa[96], sb[96];
      hone_status s = hn_fail(error, HONE_ERROR_INPUT, "shapes %s and %s do not broadcast",
                              hone_desc_format(a, sa, sizeof sa), hone_desc_format(b, sb, sizeof sb));
      return s;
    }
  }
  a->rank = rank;
  memcpy(a->dim, dim, sizeof(int64_t) * (size_t)rank);
  return HONE_OK;
}

int64_t hn_tensor_ints(const hone_tensor *t, int64_t *out, int64_t max) {
  int64_t n = hn_count(t);
  if (n > max) return -2;
  for (int64_t i = 0; i < n; i++) out[i] = hn_get_i64(t, i);
  return n;
}

int64_t hn_infer_ints(const hone_infer *io, uint32_t i, int64_t *out, int64_t max) {
  if (!hn_has_input(io, i) || !io->value[i]) return -1;
  return hn_tensor_ints(io->value[i], out, max);
}

hone_status hn_axis(int64_t axis, int32_t rank, int32_t *out, hone_error *error) {
  if (axis < -(int64_t)rank || axis >= rank)
    return hn_fail(error, HONE_ERROR_INPUT, "axis %lld is not in [%d, %d)", (long long)axis, -rank, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return HONE_OK;
}

/* ------------------------------------------------------------------ element access */

/* Large constants lie in their file at any alignment. */
double hn_get_f64(const hone_tensor *t, int64_t i) {
  const char *at = (const char *)t->data + i * (int64_t)hone_dtype_size(t->desc.dtype);
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: {
    float v;
    memcpy(&v, at, sizeof v);
    return v;
  }
  case HONE_DTYPE_F64: {
    double v;
    memcpy(&v, at, sizeof v);
    return v;
  }
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16: {
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return t->desc.dtype == HONE_DTYPE_F16 ? hn_f16_to_f32(v) : hn_bf16_to_f32(v);
  }
  case HONE_DTYPE_U64: {
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return (double)v;
  }
  default:
    return hn_narrow_bits(t->desc.dtype) ? (double)hn_narrow_to_f32(t->desc.dtype, *(const uint8_t *)at)
                                         : (double)hn_get_i64(t, i);
  }
}

int64_t hn_get_i64(const hone_tensor *t, int64_t i) {
  union {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
  } v = {0};
  size_t size = hone_dtype_size(t->desc.dtype);
  if (size <= sizeof v && size) memcpy(&v, (const char *)t->data + i * (int64_t)size, size);
  switch (t->desc.dtype) {
  case HONE_DTYPE_I8: return v.i8;
  case HONE_DTYPE_I16: return v.i16;
  case HONE_DTYPE_I32: return v.i32;
  case HONE_DTYPE_I64:
  case HONE_DTYPE_U64: return v.i64;
  case HONE_DTYPE_U8:
  case HONE_DTYPE_BOOL: return v.u8;
  case HONE_DTYPE_U16: return v.u16;
  case HONE_DTYPE_U32: return v.u32;
  default: {
    if (!hone_dtype_is_float(t->desc.dtype) && !hn_narrow_bits(t->desc.dtype))
      return 0; /* strings are no numbers */
    double f = hn_get_f64(t, i);
    if (!(f > -0x1p63)) return INT64_MIN;
    return f >= 0x1p63 ? INT64_MAX : (int64_t)f;
  }
  }
}

void hn_set_i64(const hone_tensor *t, int64_t i, int64_t v) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_I8: ((int8_t *)t->data)[i] = (int8_t)v; break;
  case HONE_DTYPE_I16: ((int16_t *)t->data)[i] = (int16_t)v; break;
  case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
  case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = v; break;
  case HONE_DTYPE_U8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
  case HONE_DTYPE_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
  case HONE_DTYPE_U16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
  case HONE_DTYPE_U32: ((uint32_t *)t->data)[i] = (uint32_t)v; break;
  case HONE_DTYPE_U64: ((uint64_t *)t->data)[i] = (uint64_t)v; break;
  default: hn_set_f64(t, i, (double)v);
  }
}

static int64_t clamp_i64(double v, double lo, double hi) {
  if (!(v > lo)) return (int64_t)lo; /* NaN too */
  if (v >= hi) return hi >= 0x1p63 ? INT64_MAX : (int64_t)hi;
  return (int64_t)v;
}

void hn_set_f64(const hone_tensor *t, int64_t i, double v) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)v; break;
  case HONE_DTYPE_F64: ((double *)t->data)[i] = v; break;
  case HONE_DTYPE_F16: ((uint16_t *)t->data)[i] = hn_f64_to_f16(v); break;
  case HONE_DTYPE_BF16: ((uint16_t *)t->data)[i] = hn_f64_to_bf16(v); break;
  case HONE_DTYPE_BOOL: ((uint8_t *)t->data)[i] = v != 0; break;
  case HONE_DTYPE_I8: hn_set_i64(t, i, clamp_i64(v, INT8_MIN, INT8_MAX)); break;
  case HONE_DTYPE_I16: hn_set_i64(t, i, clamp_i64(v, INT16_MIN, INT16_MAX)); break;
  case HONE_DTYPE_I32: hn_set_i64(t, i, clamp_i64(v, INT32_MIN, INT32_MAX)); break;
  case HONE_DTYPE_I64: hn_set_i64(t, i, clamp_i64(v, -0x1p63, 0x1p63)); break;
  case HONE_DTYPE_U8: hn_set_i64(t, i, clamp_i64(v, 0, UINT8_MAX)); break;
  case HONE_DTYPE_U16: hn_set_i64(t, i, clamp_i64(v, 0, UINT16_MAX)); break;
  case HONE_DTYPE_U32: hn_set_i64(t, i, clamp_i64(v, 0, UINT32_MAX)); break;
  case HONE_DTYPE_U64:
    ((uint64_t *)t->data)[i] = !(v > 0) ? 0 : v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
    break;
  default:
    if (hn_narrow_bits(t->desc.dtype))
      ((uint8_t *)t->data)[i] = hn_narrow_from_f64(t->desc.dtype, v, (hn_narrow_rule){0});
    break;
  }
}

/* ------------------------------------------------------------------ broadcast iteration */

void hn_iter_init(hn_iter *it, const hone_tensor_desc *out, const hone_tensor *const *operand, uint32_t n) {
  memset(it, 0, sizeof *it);
  it->rank = out->rank;
  it->n = n;
  it->count = hone_desc_count(out);
  memcpy(it->dim, out->dim, sizeof it->dim);
  for (uint32_t k = 0; k < n; k++) {
    const hone_tensor_desc *d = &operand[k]->desc;
    int64_t step = 1;
    for (int32_t i = d->rank - 1; i >= 0; i--) {
      int32_t o = i + out->rank - d->rank;
      it->stride[k][o] = d->dim[i] == 1 ? 0 : step;
      step *= d->dim[i];
    }
  }
}

void hn_iter_next(hn_iter *it) {
  for (int32_t i = it->rank - 1; i >= 0; i--) {
    it->index[i]++;
    for (uint32_t k = 0; k < it->n; k++) it->at[k] += it->stride[k][i];
    if (it->index[i] < it->dim[i]) return;
    for (uint32_t k = 0; k < it->n; k++) it->at[k] -= it->stride[k][i] * it->dim[i];
    it->index[i] = 0;
  }
}
