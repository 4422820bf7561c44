/* Conversions between f32, f64 and the 16-bit floating-point formats, round to nearest even, and once. */
#ifndef HN_BASE_HALF_H
#define HN_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hn_f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static inline float hn_bits_f32(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static inline float hn_bf16_to_f32(uint16_t h) { return hn_bits_f32((uint32_t)h << 16); }

static inline uint16_t hn_f32_to_bf16(float f) {
  uint32_t u = hn_f32_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40); /* quiet the NaN */
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

/* Without branches, so that loops of it become vectors. */
static inline float hn_f16_to_f32(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;
  const uint32_t small = hn_f32_bits((float)(int32_t)a * 0x1p-24f); /* zero and subnormals: exact in f32 */
  const uint32_t rest = (a << 13) + (a < 0x7c00u ? 112u << 23 : 224u << 23);
  return hn_bits_f32(sign | (a < 0x400u ? small : rest));
}

static inline uint16_t hn_f32_to_f16(float f) {
  uint32_t u = hn_f32_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds to infinity */
  if (a < 0x38800000u) { /* subnormal result: adding 0.5 aligns the mantissa */
    float v = hn_bits_f32(a) + 0.5f;
    return (uint16_t)(sign | (hn_f32_bits(v) - 0x3f000000u));
  }
  return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1)) >> 13));
}

/* What is inexact has an odd last bit: of that a narrower type is rounded as of the number itself. */
static inline float hn_f64_to_f32_odd(double d) {
  const float f = (float)d;
  const uint32_t u = hn_f32_bits(f);
  if ((double)f == d || d != d || u & 1) return f;
  return hn_bits_f32((u >> 31 ? (double)f < d : (double)f > d) ? u - 1 : u + 1);
}

static inline uint16_t hn_f64_to_f16(double d) { return hn_f32_to_f16(hn_f64_to_f32_odd(d)); }
static inline uint16_t hn_f64_to_bf16(double d) { return hn_f32_to_bf16(hn_f64_to_f32_odd(d)); }

#endif
