/* Numbers of 8 bits and fewer (narrow.h). */
#include "base/narrow.h"

#include <math.h>

/* What the codes beyond the largest number are. */
typedef enum beyond { NOTHING, ONE_NAN, IEEE, NEGATIVE_ZERO_IS_NAN } beyond;

typedef struct format {
  int8_t bits, exponent, mantissa, bias; /* exponent 0: an integer */
  beyond beyond;
  bool is_signed;
  uint8_t largest; /* code of the largest number */
} format;

static const format formats[HONE_DTYPE_COUNT] = {
    [HONE_DTYPE_F8E4M3FN] = {8, 4, 3, 7, ONE_NAN, true, 0x7e},
    [HONE_DTYPE_F8E4M3FNUZ] = {8, 4, 3, 8, NEGATIVE_ZERO_IS_NAN, true, 0x7f},
    [HONE_DTYPE_F8E5M2] = {8, 5, 2, 15, IEEE, true, 0x7b},
    [HONE_DTYPE_F8E5M2FNUZ] = {8, 5, 2, 16, NEGATIVE_ZERO_IS_NAN, true, 0x7f},
    [HONE_DTYPE_F8E8M0] = {8, 8, 0, 127, ONE_NAN, false, 0xfe},
    [HONE_DTYPE_F6E2M3] = {6, 2, 3, 1, NOTHING, true, 0x1f},
    [HONE_DTYPE_F6E3M2] = {6, 3, 2, 3, NOTHING, true, 0x1f},
    [HONE_DTYPE_F4E2M1] = {4, 2, 1, 1, NOTHING, true, 0x07},
    [HONE_DTYPE_I4] = {4, 0, 0, 0, NOTHING, true, 7},
    [HONE_DTYPE_U4] = {4, 0, 0, 0, NOTHING, false, 15},
    [HONE_DTYPE_I2] = {2, 0, 0, 0, NOTHING, true, 1},
    [HONE_DTYPE_U2] = {2, 0, 0, 0, NOTHING, false, 3},
};

static const format *format_of(hone_dtype d) {
  static const format none = {0};
  return (unsigned)d < HONE_DTYPE_COUNT ? &formats[d] : &none;
}

int hn_narrow_bits(hone_dtype dtype) { return format_of(dtype)->bits; }
bool hn_narrow_is_float(hone_dtype dtype) { return format_of(dtype)->exponent > 0; }

float hn_narrow_to_f32(hone_dtype dtype, uint8_t code) {
  const format *f = format_of(dtype);
  if (!f->exponent) return f->is_signed ? (float)(int8_t)code : (float)code;
  if (dtype == HONE_DTYPE_F8E8M0) return code == 0xff ? NAN : ldexpf(1, code - f->bias);
  const uint8_t sign = (uint8_t)(1u << (f->bits - 1)), rest = code & (sign - 1);
  if (f->beyond == NEGATIVE_ZERO_IS_NAN ? code == sign : f->beyond != NOTHING && rest > f->largest)
    return f->beyond == IEEE && rest == f->largest + 1 ? (code & sign ? -INFINITY : INFINITY) : NAN;
  const int exponent = rest >> f->mantissa, fraction = rest & ((1 << f->mantissa) - 1);
  const float v = exponent ? ldexpf((float)(fraction + (1 << f->mantissa)), exponent - f->bias - f->mantissa)
                           : ldexpf((float)fraction, 1 - f->bias - f->mantissa);
  return code & sign ? -v : v;
}

/* A positive number, or NaN, as a power of 2. */
static uint8_t power_of(double v, hn_narrow_rule rule) {
  if (!(v == v)) return 0xff;
  if (v <= 0) return rule.overflow ? 0xff : 0;
  if (isinf(v)) return rule.overflow ? 0xff : 0xfe;
  int exponent;
  const double part = 2 * frexp(v, &exponent); /* [1, 2) */
  int power = exponent - 1;
  power += rule.powers == HN_NARROW_UP ? part > 1 : rule.powers == HN_NARROW_NEAREST && part >= 1.5;
  if (power < -127 || power > 127) return rule.overflow ? 0xff : power < 0 ? 0 : 0xfe;
  return (uint8_t)(power + 127);
}

uint8_t hn_narrow_from_f64(hone_dtype dtype, double v, hn_narrow_rule rule) {
  const format *f = format_of(dtype);
  if (!f->exponent)
    return hn_narrow_from_i64(dtype, v > -0x1p62 && v < 0x1p62 ? (int64_t)v
                                     : v > 0                   ? INT64_MAX
                                     : v < 0                   ? INT64_MIN
                                                               : 0);
  if (dtype == HONE_DTYPE_F8E8M0) return power_of(v, rule);
  const uint8_t negative = (uint8_t)(1u << (f->bits - 1)), sign = signbit(v) ? negative : 0;
  const bool no_zero = f->beyond == NEGATIVE_ZERO_IS_NAN;
  const uint8_t nan = no_zero             ? negative
                      : f->beyond == IEEE ? (uint8_t)(sign | (f->largest + 3))
                                          : (uint8_t)(sign | (f->largest + 1));
  if (v != v) return f->beyond == NOTHING ? negative : nan;
  const double a = fabs(v);
  int code = f->largest + 1, exponent = 0;
  if (a == 0) {
    code = 0;
  } else if (!isinf(a)) {
    frexp(a, &exponent);
    exponent = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
    /* The mantissa with its leading 1 on top of the exponent before: a carry goes into the exponent. */
    const double q = rint(ldexp(a, f->mantissa - exponent)),
                 all = ldexp(exponent + f->bias - 1, f->mantissa) + q;
    if (all <= f->largest) code = (int)all;
  }
  if (code > f->largest) {
    if (!rule.overflow || f->beyond == NOTHING) return (uint8_t)(sign | f->largest);
    return f->beyond == IEEE ? (uint8_t)(sign | (f->largest + 1)) : nan;
  }
  return code == 0 && no_zero ? 0 : (uint8_t)(sign | code);
}

uint8_t hn_narrow_from_i64(hone_dtype dtype, int64_t v) {
  const format *f = format_of(dtype);
  if (f->exponent) return hn_narrow_from_f64(dtype, (double)v, (hn_narrow_rule){0});
  const uint8_t low = (uint8_t)((uint64_t)v & ((1u << f->bits) - 1)), top = (uint8_t)(1u << (f->bits - 1));
  return f->is_signed ? (uint8_t)((low ^ top) - top) : low;
}

int64_t hn_narrow_packed_bytes(hone_dtype dtype, int64_t n) {
  const int bits = format_of(dtype)->bits;
  return bits == 8 ? n : n / 8 * bits + (n % 8 * bits + 7) / 8;
}

void hn_narrow_unpack(hone_dtype dtype, const uint8_t *packed, int64_t n, uint8_t *to) {
  const format *f = format_of(dtype);
  const int64_t end = hn_narrow_packed_bytes(dtype, n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = i / 8 * f->bits + i % 8 * f->bits / 8;
    const int shift = (int)(i % 8 * f->bits % 8);
    const unsigned two = packed[at] | (at + 1 < end ? (unsigned)packed[at + 1] << 8 : 0);
    const uint8_t code = (uint8_t)(two >> shift & ((1u << f->bits) - 1));
    to[i] = f->exponent ? code : hn_narrow_from_i64(dtype, code);
  }
}

void hn_narrow_pack(hone_dtype dtype, const uint8_t *from, int64_t n, uint8_t *packed) {
  const int bits = format_of(dtype)->bits;
  const int64_t end = hn_narrow_packed_bytes(dtype, n);
  for (int64_t i = 0; i < end; i++) packed[i] = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = i / 8 * bits + i % 8 * bits / 8;
    const unsigned two = (from[i] & ((1u << bits) - 1)) << (i % 8 * bits % 8);
    packed[at] |= (uint8_t)two;
    if (two >> 8) packed[at + 1] |= (uint8_t)(two >> 8);
  }
}
