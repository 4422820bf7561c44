/* See numbers.h. The 16-bit floats are read and written by their definition. */
#include "cli/op/numbers.h"

#include <math.h>
#include <string.h>

/* Bits of the fraction, the exponents of the normal numbers, and 2^least, 2^(least - fraction), the largest
 * number. */
typedef struct format {
  int fraction, least, most;
  double normal, smallest, largest;
} format;

static const format *format_of(hone_dtype dtype) {
  static const format f64 = {52, -1022, 1023, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp1023},
                      f16 = {10, -14, 15, 0x1p-14, 0x1p-24, 0x1.ffcp15},
                      bf16 = {7, -126, 127, 0x1p-126, 0x1p-133, 0x1.fep127},
                      f32 = {23, -126, 127, 0x1p-126, 0x1p-149, 0x1.fffffep127};
  switch (dtype) {
  case HONE_DTYPE_F64: return &f64;
  case HONE_DTYPE_F16: return &f16;
  case HONE_DTYPE_BF16: return &bf16;
  default: return &f32;
  }
}

double op_largest(hone_dtype dtype) { return format_of(dtype)->largest; }
double op_normal(hone_dtype dtype) { return format_of(dtype)->normal; }
double op_smallest(hone_dtype dtype) { return format_of(dtype)->smallest; }

double op_ulp(hone_dtype dtype, double value) {
  const format *f = format_of(dtype);
  if (!hone_dtype_is_float(dtype)) return 1;
  const int e = value == 0 || !isfinite(value) ? f->least : ilogb(value);
  return ldexp(1, (e < f->least ? f->least : e > f->most ? f->most : e) - f->fraction);
}

static uint16_t short_bits(hone_dtype dtype, double v) {
  const format *f = format_of(dtype);
  const uint16_t sign = signbit(v) ? 0x8000 : 0, infinite = (uint16_t)((2 * f->most + 1) << f->fraction);
  if (isnan(v)) return (uint16_t)(sign | infinite | 1 << (f->fraction - 1));
  const double step = op_ulp(dtype, v), r = isinf(v) ? v : nearbyint(fabs(v) / step) * step;
  if (fabs(r) > f->largest) return sign | infinite;
  if (r < f->normal) return (uint16_t)(sign | (uint16_t)(r / f->smallest));
  const int e = ilogb(r);
  const uint16_t fraction = (uint16_t)(ldexp(r, f->fraction - e) - ldexp(1, f->fraction));
  return (uint16_t)(sign | (uint16_t)((e + f->most) << f->fraction) | fraction);
}

static double short_value(hone_dtype dtype, uint16_t bits) {
  const format *f = format_of(dtype);
  const int e = (bits & 0x7fff) >> f->fraction, fraction = bits & ((1 << f->fraction) - 1);
  double v = e == 2 * f->most + 1 ? (fraction ? (double)NAN : (double)INFINITY)
             : e                  ? ldexp(fraction + (1 << f->fraction), e - f->most - f->fraction)
                                  : fraction * f->smallest;
  return bits & 0x8000 ? -v : v;
}

#define INTEGERS(X)                                                                                          \
  X(U8, uint8_t, 0, UINT8_MAX)                                                                               \
  X(I8, int8_t, INT8_MIN, INT8_MAX)                                                                          \
  X(U16, uint16_t, 0, UINT16_MAX)                                                                            \
  X(I16, int16_t, INT16_MIN, INT16_MAX)                                                                      \
  X(I32, int32_t, INT32_MIN, INT32_MAX)                                                                      \
  X(U32, uint32_t, 0, UINT32_MAX)                                                                            \
  X(I64, int64_t, -0x1p53, 0x1p53)                                                                           \
  X(U64, uint64_t, 0, 0x1p53)

double op_element(hone_dtype dtype, const void *data, int64_t i) {
  const char *p = data;
  uint16_t bits;
  switch (dtype) {
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16:
    memcpy(&bits, p + i * (int64_t)sizeof bits, sizeof bits);
    return short_value(dtype, bits);
  case HONE_DTYPE_BOOL: return ((const uint8_t *)data)[i];
#define X(id, type, low, high)                                                                               \
  case HONE_DTYPE_##id: {                                                                                    \
    type v;                                                                                                  \
    memcpy(&v, p + i * (int64_t)sizeof v, sizeof v);                                                         \
    return (double)v;                                                                                        \
  }
    X(F32, float, 0, 0)
    X(F64, double, 0, 0)
    INTEGERS(X)
#undef X
  default: return NAN;
  }
}

void op_set_element(hone_dtype dtype, void *data, int64_t i, double value) {
  char *p = (char *)data + i * (int64_t)hone_dtype_size(dtype);
  const float f = (float)value;
  uint16_t bits;
  switch (dtype) {
  case HONE_DTYPE_F32: memcpy(p, &f, sizeof f); break;
  case HONE_DTYPE_F64: memcpy(p, &value, sizeof value); break;
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16:
    bits = short_bits(dtype, value);
    memcpy(p, &bits, sizeof bits);
    break;
  case HONE_DTYPE_BOOL: *(uint8_t *)p = value != 0; break;
#define X(id, type, low, high)                                                                               \
  case HONE_DTYPE_##id: {                                                                                    \
    const double r = isnan(value) ? 0 : nearbyint(value);                                                    \
    const type v = (type)(r < (double)(low) ? (double)(low) : r > (double)(high) ? (double)(high) : r);      \
    memcpy(p, &v, sizeof v);                                                                                 \
    break;                                                                                                   \
  }
    INTEGERS(X)
#undef X
  default: break;
  }
}
