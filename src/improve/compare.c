#include "improve/compare.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>

static bool same_string(const hone_tensor *a, const hone_tensor *b, int64_t i) {
  const hone_string *x = (const hone_string *)a->data + i, *y = (const hone_string *)b->data + i;
  return x->len == y->len && memcmp(x->ptr, y->ptr, x->len) == 0;
}

/* Integers of 64 bits that a double cannot tell apart differ all the same. */
static double difference(const hone_tensor *got, const hone_tensor *reference, int64_t i, double a,
                         double b) {
  const hone_dtype t = reference->desc.dtype;
  if (a != b || (t != HONE_DTYPE_I64 && t != HONE_DTYPE_U64)) return fabs(a - b);
  const uint64_t x = (uint64_t)hn_get_i64(got, i), y = (uint64_t)hn_get_i64(reference, i);
  return (double)(x - y < y - x ? x - y : y - x);
}

void hn_compare(const hone_tensor *got, const hone_tensor *reference, hn_difference *d) {
  *d = (hn_difference){.count = hone_desc_count(&reference->desc)};
  bool strings = reference->desc.dtype == HONE_DTYPE_STRING, f32 = reference->desc.dtype == HONE_DTYPE_F32;
  double low = INFINITY, high = -INFINITY, first = 0;
  int64_t zeros = 0, firsts = 0;
  for (int64_t i = 0; i < d->count; i++) {
    if (strings) {
      d->unlike += !same_string(got, reference, i);
      continue;
    }
    double a = f32 ? (double)((const float *)got->data)[i] : hn_get_f64(got, i);
    double b = f32 ? (double)((const float *)reference->data)[i] : hn_get_f64(reference, i);
    if (i == 0) first = b;
    zeros += b == 0;
    firsts += b == first;
    if (!isfinite(b)) d->not_finite++;
    if (!isfinite(a) || !isfinite(b)) {
      if (!(isnan(a) && isnan(b)) && a != b) {
        d->unlike++;
        d->where = i;
      }
      continue;
    }
    if (b < low) low = b;
    if (b > high) high = b;
    if (fabs(b) > d->magnitude) d->magnitude = fabs(b);
    const double apart = difference(got, reference, i, a, b);
    if (apart > d->max_abs) {
      d->max_abs = apart;
      if (!d->unlike) d->where = i;
    }
  }
  d->range = high > low ? high - low : 0;
  d->common = zeros > firsts ? zeros : firsts;
}

double hn_verify_tolerance(hone_dtype dtype, bool quantised) {
  switch (dtype) {
  case HONE_DTYPE_F32:
  case HONE_DTYPE_F64: return quantised ? 2.0 / 255 : 1e-4;
  case HONE_DTYPE_F16: return quantised ? 2.0 / 255 : 0x1p-8;  /* a few units in the last place of 11 bits */
  case HONE_DTYPE_BF16: return quantised ? 2.0 / 255 : 0x1p-5; /* the same of 8 bits */
  case HONE_DTYPE_U8:
  case HONE_DTYPE_I8: return quantised ? 2.0 / 255 : 0; /* two steps */
  default: return 0;
  }
}
