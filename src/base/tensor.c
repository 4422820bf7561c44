/* Data types and tensor descriptors (include/hone/tensor.h). */
#include <hone/tensor.h>

#include <stdio.h>
#include <string.h>

/* Names as tensors, sequences, optionals and optional sequences, maps from i64 and sequences of these, maps
 * from strings and sequences of these; NULL: there is no such form. */
enum { FORMS = 10, ELEMENT = HONE_SEQUENCE - 1 };
#define TYPE(name, size)                                                                                     \
  {                                                                                                          \
    {name, "seq " name, "optional " name,   "optional seq " name,  "map_i64 " name, "seq map_i64 " name,     \
     NULL, NULL,        "map_string " name, "seq map_string " name},                                         \
        size                                                                                                 \
  }

static const struct {
  const char *name[FORMS];
  uint8_t size;
} types[HONE_DTYPE_COUNT] = {
    [HONE_DTYPE_NONE] = TYPE("none", 0),
    [HONE_DTYPE_F32] = TYPE("f32", 4),
    [HONE_DTYPE_U8] = TYPE("u8", 1),
    [HONE_DTYPE_I8] = TYPE("i8", 1),
    [HONE_DTYPE_U16] = TYPE("u16", 2),
    [HONE_DTYPE_I16] = TYPE("i16", 2),
    [HONE_DTYPE_I32] = TYPE("i32", 4),
    [HONE_DTYPE_I64] = TYPE("i64", 8),
    [HONE_DTYPE_STRING] = TYPE("string", sizeof(hone_string)),
    [HONE_DTYPE_BOOL] = TYPE("bool", 1),
    [HONE_DTYPE_F16] = TYPE("f16", 2),
    [HONE_DTYPE_F64] = TYPE("f64", 8),
    [HONE_DTYPE_U32] = TYPE("u32", 4),
    [HONE_DTYPE_U64] = TYPE("u64", 8),
    [HONE_DTYPE_C64] = TYPE("c64", 8),
    [HONE_DTYPE_C128] = TYPE("c128", 16),
    [HONE_DTYPE_BF16] = TYPE("bf16", 2),
    [HONE_DTYPE_F8E4M3FN] = TYPE("f8e4m3fn", 1),
    [HONE_DTYPE_F8E4M3FNUZ] = TYPE("f8e4m3fnuz", 1),
    [HONE_DTYPE_F8E5M2] = TYPE("f8e5m2", 1),
    [HONE_DTYPE_F8E5M2FNUZ] = TYPE("f8e5m2fnuz", 1),
    [HONE_DTYPE_U4] = TYPE("u4", 1),
    [HONE_DTYPE_I4] = TYPE("i4", 1),
    [HONE_DTYPE_F4E2M1] = TYPE("f4e2m1", 1),
    [HONE_DTYPE_F8E8M0] = TYPE("f8e8m0", 1),
    [HONE_DTYPE_U2] = TYPE("u2", 1),
    [HONE_DTYPE_I2] = TYPE("i2", 1),
    [HONE_DTYPE_F6E2M3] = TYPE("f6e2m3", 1),
    [HONE_DTYPE_F6E3M2] = TYPE("f6e3m2", 1),
};

bool hone_dtype_is_tensor(hone_dtype d) { return (unsigned)d <= ELEMENT; }
hone_dtype hone_dtype_element(hone_dtype d) { return (hone_dtype)((unsigned)d & ELEMENT); }

static bool has_name(hone_dtype d) {
  const unsigned form = (unsigned)d / HONE_SEQUENCE;
  return (unsigned)hone_dtype_element(d) < HONE_DTYPE_COUNT && form < FORMS && types[0].name[form];
}

size_t hone_dtype_size(hone_dtype d) {
  const unsigned k = (unsigned)d;
  if (k < HONE_DTYPE_COUNT) return types[k].size;
  return has_name(d) && !hone_dtype_is_tensor(d) ? sizeof(hone_items) : 0;
}
const char *hone_dtype_name(hone_dtype d) {
  return has_name(d) ? types[hone_dtype_element(d)].name[(unsigned)d / HONE_SEQUENCE] : "unknown";
}

hone_dtype hone_dtype_from_name(const char *name) {
  if (!name) return HONE_DTYPE_NONE;
  for (int form = 0; form < FORMS; form++)
    for (int d = 1; d < HONE_DTYPE_COUNT; d++)
      if (types[d].name[form] && strcmp(types[d].name[form], name) == 0)
        return (hone_dtype)(d | form * HONE_SEQUENCE);
  return HONE_DTYPE_NONE;
}

bool hone_dtype_is_float(hone_dtype d) {
  return d == HONE_DTYPE_F32 || d == HONE_DTYPE_F64 || d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16;
}
bool hone_dtype_is_signed_int(hone_dtype d) {
  return d == HONE_DTYPE_I8 || d == HONE_DTYPE_I16 || d == HONE_DTYPE_I32 || d == HONE_DTYPE_I64;
}
bool hone_dtype_is_unsigned_int(hone_dtype d) {
  return d == HONE_DTYPE_U8 || d == HONE_DTYPE_U16 || d == HONE_DTYPE_U32 || d == HONE_DTYPE_U64;
}

hone_tensor_desc hone_desc(hone_dtype dtype, int32_t rank, const int64_t *dims) {
  hone_tensor_desc d = {.dtype = dtype, .rank = rank <= HONE_MAX_RANK ? rank : -1};
  for (int32_t i = 0; i < d.rank; i++) d.dim[i] = dims ? dims[i] : -1;
  if (hone_desc_known(&d)) hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  return d;
}

void hone_desc_set_layout(hone_tensor_desc *d, hone_layout layout, int64_t pitch) {
  if (!d) return;
  d->layout = layout;
  d->channel_pitch = 0;
  int64_t step = 1;
  if (layout == HONE_LAYOUT_CHANNELS_LAST && d->rank >= 3) {
    d->channel_pitch = pitch ? pitch : d->dim[1];
    d->stride[1] = 1;
    step = d->channel_pitch;
    for (int32_t i = d->rank - 1; i >= 0; i--) {
      if (i == 1) continue;
      d->stride[i] = step;
      if (__builtin_mul_overflow(step, d->dim[i], &step)) step = 0;
    }
    return;
  }
  d->layout = HONE_LAYOUT_ROW_MAJOR;
  for (int32_t i = d->rank - 1; i >= 0; i--) {
    d->stride[i] = step;
    if (__builtin_mul_overflow(step, d->dim[i], &step)) step = 0;
  }
}

bool hone_desc_known(const hone_tensor_desc *d) {
  if (!d) return false;
  if (d->rank < 0) return false;
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] < 0) return false;
  return true;
}

int64_t hone_desc_count(const hone_tensor_desc *d) {
  if (!d) return 0;
  if (d->rank < 0) return -1;
  int64_t n = 1;
  bool beyond = false, none = false; /* of an empty tensor 0, however large its other dimensions */
  for (int32_t i = 0; i < d->rank; i++) {
    const int64_t dim = d->dim[i];
    if (dim < 0) return -1;
    none |= dim == 0;
    beyond |= __builtin_mul_overflow(n, dim, &n);
  }
  return none ? 0 : beyond ? -1 : n;
}

int64_t hone_desc_bytes(const hone_tensor_desc *d) {
  if (!d) return 0;
  int64_t n = hone_desc_count(d);
  if (n <= 0) return n;
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && d->rank >= 2 && d->channel_pitch > d->dim[1]) {
    n /= d->dim[1];
    if (__builtin_mul_overflow(n, d->channel_pitch, &n)) return -1;
  }
  return __builtin_mul_overflow(n, (int64_t)hone_dtype_size(d->dtype), &n) ? -1 : n;
}

bool hone_desc_same_dims(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  if (!a || !b) return false;
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

char *hone_quant_format(const hone_quant *q, char *buf, size_t size) {
  if (!buf || !size) return buf;
  buf[0] = 0;
  if (!q || !q->count) return buf;
  if (q->count > 1)
    snprintf(buf, size, "%u scales on axis %d", q->count, (int)q->axis);
  else
    snprintf(buf, size, "scale %.6g zero %d", (double)q->scale[0], q->zero_point ? (int)q->zero_point[0] : 0);
  return buf;
}

bool hone_quant_same(const hone_quant *a, const hone_quant *b) {
  if (!a || !b) return false;
  if (a->count != b->count || (a->count > 1 && a->axis != b->axis)) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const int32_t za = a->zero_point ? a->zero_point[i] : 0, zb = b->zero_point ? b->zero_point[i] : 0;
    if (memcmp(&a->scale[i], &b->scale[i], sizeof *a->scale) != 0 || za != zb) return false;
  }
  return true;
}

char *hone_desc_format(const hone_tensor_desc *d, char *buf, size_t size) {
  if (!buf || !size) return buf;
  buf[0] = 0;
  if (!d) return buf;
  size_t n = (size_t)snprintf(buf, size, "%s", hone_dtype_name(d->dtype));
  if (!hone_dtype_is_tensor(d->dtype)) return buf;
  if (n < size) n += (size_t)snprintf(buf + n, size - n, "[");
  if (d->rank < 0 && n < size) n += (size_t)snprintf(buf + n, size - n, "...");
  for (int32_t i = 0; i < d->rank && n < size; i++)
    n += d->dim[i] < 0 ? (size_t)snprintf(buf + n, size - n, "%s?", i ? "x" : "")
                       : (size_t)snprintf(buf + n, size - n, "%s%lld", i ? "x" : "", (long long)d->dim[i]);
  if (n < size)
    snprintf(buf + n, size - n, "]%s", d->layout == HONE_LAYOUT_CHANNELS_LAST ? " channels-last" : "");
  return buf;
}
