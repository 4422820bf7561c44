/* See numbers.h. The 16-bit floats are read and written by their definition. */
#include "cli/op/numbers.h"

#include <math.h>
#include <string.h>

/* Bits of the fraction, and the exponents of the normal numbers. */
typedef struct format {
  int fraction, least, most;
} format;

static format format_of(hone_dtype dtype) {
  switch (dtype) {
  case HONE_DTYPE_F64: return (format){52, -1022, 1023};
  case HONE_DTYPE_F16: return (format){10, -14, 15};
  case HONE_DTYPE_BF16: return (format){7, -126, 127};
  default: return (format){23, -126, 127};
  }
}

double op_largest(hone_dtype dtype) {
  const format f = format_of(dtype);
  return ldexp(2 - ldexp(1, -f.fraction), f.most);
}
double op_normal(hone_dtype dtype) { return ldexp(1, format_of(dtype).least); }
double op_smallest(hone_dtype dtype) {
  const format f = format_of(dtype);
  return ldexp(1, f.least - f.fraction);
}

double op_ulp(hone_dtype dtype, double value) {
  const format f = format_of(dtype);
  if (!hone_dtype_is_float(dtype)) return 1;
  const int e = value == 0 || !isfinite(value) ? f.least : ilogb(value);
  return ldexp(1, (e < f.least ? f.least : e > f.most ? f.most : e) - f.fraction);
}

static uint16_t short_bits(hone_dtype dtype, double v) {
  const format f = format_of(dtype);
  const uint16_t sign = signbit(v) ? 0x8000 : 0, infinite = (uint16_t)((2 * f.most + 1) << f.fraction);
  if (isnan(v)) return (uint16_t)(sign | infinite | 1 << (f.fraction - 1));
  const double step = op_ulp(dtype, v), r = isinf(v) ? v : nearbyint(fabs(v) / step) * step;
  if (fabs(r) > op_largest(dtype)) return sign | infinite;
  const double unit = ldexp(1, f.least - f.fraction);
  if (r < ldexp(1, f.least)) return (uint16_t)(sign | (uint16_t)(r / unit));
  const int e = ilogb(r);
  const uint16_t fraction = (uint16_t)(ldexp(r, f.fraction - e) - ldexp(1, f.fraction));
  return (uint16_t)(sign | (uint16_t)((e + f.most) << f.fraction) | fraction);
}

static double short_value(hone_dtype dtype, uint16_t bits) {
  const format f = format_of(dtype);
  const int e = (bits & 0x7fff) >> f.fraction, fraction = bits & ((1 << f.fraction) - 1);
  double v = e == 2 * f.most + 1 ? (fraction ? (double)NAN : (double)INFINITY)
             : e                 ? ldexp(fraction + (1 << f.fraction), e - f.most - f.fraction)
                                 : ldexp(fraction, f.least - f.fraction);
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
  const char *p = (const char *)data + i * (int64_t)hone_dtype_size(dtype);
  float f;
  double d;
  uint16_t bits;
  switch (dtype) {
  case HONE_DTYPE_F32: memcpy(&f, p, sizeof f); return f;
  case HONE_DTYPE_F64: memcpy(&d, p, sizeof d); return d;
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16: memcpy(&bits, p, sizeof bits); return short_value(dtype, bits);
  case HONE_DTYPE_BOOL: return *(const uint8_t *)p;
#define X(id, type, low, high)                                                                               \
  case HONE_DTYPE_##id: {                                                                                    \
    type v;                                                                                                  \
    memcpy(&v, p, sizeof v);                                                                                 \
    return (double)v;                                                                                        \
  }
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
