/* Conversion of runs of elements between dtypes. */
#include "base/half_of_integer.h"
#include "model/ops/common/convert.h"

#define EACH(expr)                                                                                           \
  {                                                                                                          \
    for (int64_t i = 0; i < n; i++) dst[i] = (expr);                                                         \
  }                                                                                                          \
  break

/* One case a dtype; x is the element. */
#define LOAD_CASES(T, half)                                                                                  \
  case HONE_DTYPE_U8: EACH((T)((const uint8_t *)src)[first + i]);                                            \
  case HONE_DTYPE_I8: EACH((T)((const int8_t *)src)[first + i]);                                             \
  case HONE_DTYPE_U16: EACH((T)((const uint16_t *)src)[first + i]);                                          \
  case HONE_DTYPE_I16: EACH((T)((const int16_t *)src)[first + i]);                                           \
  case HONE_DTYPE_U32: EACH((T)((const uint32_t *)src)[first + i]);                                          \
  case HONE_DTYPE_I32: EACH((T)((const int32_t *)src)[first + i]);                                           \
  case HONE_DTYPE_U64: EACH((T)((const uint64_t *)src)[first + i]);                                          \
  case HONE_DTYPE_I64: EACH((T)((const int64_t *)src)[first + i]);                                           \
  case HONE_DTYPE_BOOL: EACH((T)(((const uint8_t *)src)[first + i] != 0));                                   \
  case HONE_DTYPE_F16: EACH(half(hn_f16_to_f32(((const uint16_t *)src)[first + i])));                        \
  case HONE_DTYPE_BF16: EACH(half(hn_bf16_to_f32(((const uint16_t *)src)[first + i])));                      \
  case HONE_DTYPE_F32: EACH(half(((const float *)src)[first + i]));                                          \
  case HONE_DTYPE_F64: EACH(half(((const double *)src)[first + i]));                                         \
  default:                                                                                                   \
    if (hn_narrow_bits(dtype)) EACH(half(hn_narrow_to_f32(dtype, ((const uint8_t *)src)[first + i])))

void hn_read_f32(float *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n) {
  switch (dtype) { LOAD_CASES(float, (float)); }
}
void hn_read_f64(double *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n) {
  switch (dtype) { LOAD_CASES(double, (double)); }
}
void hn_read_i64(int64_t *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n) {
  switch (dtype) { LOAD_CASES(int64_t, hn_trunc_i64); }
}

#undef EACH
#define EACH(T, expr)                                                                                        \
  {                                                                                                          \
    for (int64_t i = 0; i < n; i++) ((T *)dst)[first + i] = (T)(expr);                                       \
  }                                                                                                          \
  break

static inline int64_t clamp_i64(double v, int64_t lo, int64_t hi) {
  int64_t t = hn_trunc_i64(v);
  return t < lo ? lo : t > hi ? hi : t;
}
static inline uint64_t clamp_u64(double v, uint64_t hi) {
  uint64_t t = hn_trunc_u64(v);
  return t > hi ? hi : t;
}

#define STORE_CASES                                                                                          \
  case HONE_DTYPE_U8: EACH(uint8_t, clamp_u64(src[i], UINT8_MAX));                                           \
  case HONE_DTYPE_I8: EACH(int8_t, clamp_i64(src[i], INT8_MIN, INT8_MAX));                                   \
  case HONE_DTYPE_U16: EACH(uint16_t, clamp_u64(src[i], UINT16_MAX));                                        \
  case HONE_DTYPE_I16: EACH(int16_t, clamp_i64(src[i], INT16_MIN, INT16_MAX));                               \
  case HONE_DTYPE_U32: EACH(uint32_t, clamp_u64(src[i], UINT32_MAX));                                        \
  case HONE_DTYPE_I32: EACH(int32_t, clamp_i64(src[i], INT32_MIN, INT32_MAX));                               \
  case HONE_DTYPE_U64: EACH(uint64_t, hn_trunc_u64(src[i]));                                                 \
  case HONE_DTYPE_I64: EACH(int64_t, hn_trunc_i64(src[i]));                                                  \
  case HONE_DTYPE_BOOL: EACH(uint8_t, src[i] != 0);                                                          \
  case HONE_DTYPE_F16:                                                                                       \
    EACH(uint16_t, _Generic(*src, double : hn_f64_to_f16, default : hn_f32_to_f16)(src[i]));                 \
  case HONE_DTYPE_BF16:                                                                                      \
    EACH(uint16_t, _Generic(*src, double : hn_f64_to_bf16, default : hn_f32_to_bf16)(src[i]));               \
  case HONE_DTYPE_F32: EACH(float, src[i]);                                                                  \
  case HONE_DTYPE_F64: EACH(double, src[i]);                                                                 \
  default:                                                                                                   \
    if (hn_narrow_bits(dtype)) EACH(uint8_t, hn_narrow_from_f64(dtype, (double)src[i], (hn_narrow_rule){0}))

void hn_write_f32(void *dst, hone_dtype dtype, int64_t first, const float *src, int64_t n) {
  switch (dtype) { STORE_CASES; }
}
void hn_write_f64(void *dst, hone_dtype dtype, int64_t first, const double *src, int64_t n) {
  switch (dtype) { STORE_CASES; }
}

void hn_write_i64(void *dst, hone_dtype dtype, int64_t first, const int64_t *src, int64_t n) {
  switch (dtype) {
  case HONE_DTYPE_U8:
  case HONE_DTYPE_I8: EACH(uint8_t, (uint64_t)src[i]);
  case HONE_DTYPE_U16:
  case HONE_DTYPE_I16: EACH(uint16_t, (uint64_t)src[i]);
  case HONE_DTYPE_U32:
  case HONE_DTYPE_I32: EACH(uint32_t, (uint64_t)src[i]);
  case HONE_DTYPE_U64:
  case HONE_DTYPE_I64: EACH(uint64_t, (uint64_t)src[i]);
  case HONE_DTYPE_BOOL: EACH(uint8_t, src[i] != 0);
  case HONE_DTYPE_F16: EACH(uint16_t, hn_f64_to_f16((double)src[i]));
  case HONE_DTYPE_BF16: EACH(uint16_t, hn_i64_to_bf16(src[i]));
  case HONE_DTYPE_F32: EACH(float, src[i]);
  case HONE_DTYPE_F64: EACH(double, src[i]);
  default:
    if (hn_narrow_bits(dtype)) EACH(uint8_t, hn_narrow_from_i64(dtype, src[i]));
  }
}

hone_status hn_call_check(hone_call *call, hone_error *error) {
  if (!call->stopped(call)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_CANCELLED, "%s was stopped", hone_node_op(call->node));
}
