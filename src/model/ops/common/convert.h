/* Conversion of runs of elements in memory between a dtype and the types that references compute in. Element
 * offsets and counts are in elements; strings are not numbers and are left alone. */
#ifndef HN_MODEL_OPS_CONVERT_H
#define HN_MODEL_OPS_CONVERT_H

#include "model/ops/common/op.h"

void hn_read_f32(float *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n);
void hn_read_f64(double *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n);
/* Any integer or bool (u64 as its bits); floats truncate towards zero and saturate, NaN gives 0. */
void hn_read_i64(int64_t *dst, const void *src, hone_dtype dtype, int64_t first, int64_t n);
/* Floats round to nearest even; integers truncate towards zero and saturate (NaN gives 0); bool is v != 0. */
void hn_write_f32(void *dst, hone_dtype dtype, int64_t first, const float *src, int64_t n);
void hn_write_f64(void *dst, hone_dtype dtype, int64_t first, const double *src, int64_t n);
/* Integers wrap modulo 2^bits; floats round; bool is v != 0. */
void hn_write_i64(void *dst, hone_dtype dtype, int64_t first, const int64_t *src, int64_t n);

/* Truncation that is defined for every value: saturates, NaN gives 0. */
static inline int64_t hn_trunc_i64(double v) {
  if (v >= 0x1p63) return INT64_MAX;
  if (v > -0x1p63) return (int64_t)v;
  return v == v ? INT64_MIN : 0;
}
static inline uint64_t hn_trunc_u64(double v) {
  if (v >= 0x1p64) return UINT64_MAX;
  return v > 0 ? (uint64_t)v : 0;
}

static inline const void *hn_at(const hone_tensor *t, int64_t i) {
  return (const char *)t->data + (size_t)i * hone_dtype_size(t->desc.dtype);
}
static inline void *hn_at_mut(hone_tensor *t, int64_t i) {
  return (char *)t->data + (size_t)i * hone_dtype_size(t->desc.dtype);
}

/* HONE_ERROR_CANCELLED when the run was stopped; long loops ask once per HN_STOP_EVERY elements or so. */
#define HN_STOP_EVERY (1 << 16)
hone_status hn_call_check(hone_call *call, hone_error *error);

#endif
