#include "improve/compare.h"

#include "model/ir/items.h"
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

/* What is seen of the reference on the way. */
typedef struct spread {
  double low, high, first;
  int64_t zeros, firsts;
} spread;

static void compare_tensors(const hone_tensor *got, const hone_tensor *reference, hn_difference *d,
                            spread *s) {
  const int64_t count = hone_desc_count(&reference->desc), before = d->count;
  const bool strings = reference->desc.dtype == HONE_DTYPE_STRING,
             f32 = reference->desc.dtype == HONE_DTYPE_F32;
  d->count += count;
  for (int64_t i = 0; i < count; i++) {
    if (strings) {
      d->unlike += !same_string(got, reference, i);
      continue;
    }
    double a = f32 ? (double)((const float *)got->data)[i] : hn_get_f64(got, i);
    double b = f32 ? (double)((const float *)reference->data)[i] : hn_get_f64(reference, i);
    if (before + i == 0) s->first = b;
    s->zeros += b == 0;
    s->firsts += b == s->first;
    if (!isfinite(b)) d->not_finite++;
    if (!isfinite(a) || !isfinite(b)) {
      if (!(isnan(a) && isnan(b)) && a != b) {
        d->unlike++;
        d->where = before + i;
      }
      continue;
    }
    if (b < s->low) s->low = b;
    if (b > s->high) s->high = b;
    if (fabs(b) > d->magnitude) d->magnitude = fabs(b);
    const double apart = difference(got, reference, i, a, b);
    if (apart > d->max_abs) {
      d->max_abs = apart;
      if (!d->unlike) d->where = before + i;
    }
  }
}

/* What is in a sequence or optional, one behind the other. */
static void compare_values(const hone_tensor *got, const hone_tensor *reference, hn_difference *d,
                           spread *s) {
  if (hone_dtype_is_tensor(reference->desc.dtype)) {
    compare_tensors(got, reference, d, s);
    return;
  }
  const hone_items *a = hn_items(got), *b = hn_items(reference);
  if (a->count != b->count) d->unlike++;
  for (size_t i = 0; i < a->count && i < b->count; i++) {
    const hone_tensor_desc *x = &a->item[i]->desc, *y = &b->item[i]->desc;
    if (x->dtype == y->dtype && hone_desc_same_dims(x, y))
      compare_values(a->item[i], b->item[i], d, s);
    else
      d->unlike++;
  }
}

void hn_compare(const hone_tensor *got, const hone_tensor *reference, hn_difference *d) {
  spread s = {.low = INFINITY, .high = -INFINITY};
  *d = (hn_difference){0};
  compare_values(got, reference, d, &s);
  d->range = s.high > s.low ? s.high - s.low : 0;
  d->common = s.zeros > s.firsts ? s.zeros : s.firsts;
}

double hn_verify_tolerance(hone_dtype dtype, bool quantised) {
  switch (dtype) {
  case HONE_DTYPE_F32:
  case HONE_DTYPE_F64: return quantised ? 2.0 / 255 : 1e-4;
  case HONE_DTYPE_F16: return quantised ? 2.0 / 255 : 0x1p-8;  /* a few units in the last place of 11 bits */
  case HONE_DTYPE_BF16: return quantised ? 2.0 / 255 : 0x1p-5; /* the same of 8 bits */
  case HONE_DTYPE_F8E4M3FN: return 0x1p-4; /* a rounding of 4 bits: most errors of a sum cancel */
  case HONE_DTYPE_U8:
  case HONE_DTYPE_I8: return quantised ? 2.0 / 255 : 0; /* two steps */
  case HONE_DTYPE_U16:
  case HONE_DTYPE_I16: return quantised ? 2.0 / 65535 : 0;
  default: return 0;
  }
}
