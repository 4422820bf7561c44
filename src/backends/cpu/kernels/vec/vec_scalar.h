/* The one-lane tier: plain C, no approximation of its own (see vec.h). */
#ifndef HN_VEC_SCALAR_H
#define HN_VEC_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/half.h"

#define VEC_TIER scalar
#define VEC_W 1

typedef float vf;
typedef int32_t vi;
typedef bool vm;

static inline vf v_set1(float x) { return x; }
static inline vf v_zero(void) { return 0.0f; }
static inline vf v_load(const float *p) { return *p; }
static inline void v_store(float *p, vf v) { *p = v; }
static inline vf v_loadn(const float *p, size_t n) { return n ? *p : 0.0f; }
static inline void v_storen(float *p, vf v, size_t n) {
  if (n) *p = v;
}

static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_sqrt(vf a) { return sqrtf(a); }
/* Two roundings where the vector tiers make one: without FMA hardware fmaf is a slow library call. */
static inline vf v_fma(vf a, vf b, vf c) { return a * b + c; }
static inline void v_fma_into(vf *sum, vf a, vf b) { *sum = v_fma(a, b, *sum); }
static inline vf v_fnma(vf a, vf b, vf c) { return c - a * b; }
static inline vf v_max(vf a, vf b) { return a != a ? a : a > b ? a : b; }
static inline vf v_min(vf a, vf b) { return a != a ? a : a < b ? a : b; }
/* x when x is NaN; the other operand must be a number. One instruction in the vector tiers. */
static inline vf v_max_number(vf lo, vf x) { return lo > x ? lo : x; }
static inline vf v_min_number(vf hi, vf x) { return hi < x ? hi : x; }
static inline vf v_neg(vf a) { return -a; }
static inline vf v_abs(vf a) { return fabsf(a); }
static inline vf v_copysign(vf mag, vf sign) { return copysignf(mag, sign); }
static inline vf v_floor(vf a) { return floorf(a); }
static inline vf v_ceil(vf a) { return ceilf(a); }
static inline vf v_round(vf a) { return rintf(a); }
static inline vf v_trunc(vf a) { return truncf(a); }

static inline vm v_lt(vf a, vf b) { return a < b; }
static inline vm v_le(vf a, vf b) { return a <= b; }
static inline vm v_eq(vf a, vf b) { return a == b; }
static inline vm v_ne(vf a, vf b) { return a != b; }
static inline vf v_sel(vm m, vf a, vf b) { return m ? a : b; }

/* Bytes as numbers, and numbers of [-128, 255] as the low bytes of their integers. */
static inline vf v_load_i8(const void *p) { return (float)*(const int8_t *)p; }
static inline vf v_load_u8(const void *p) { return (float)*(const uint8_t *)p; }
static inline void v_store_8(void *p, vf v) { *(uint8_t *)p = (uint8_t)(int32_t)v; }

/* saturate(round_half_even(v[i]) + zero), one code after the other; |v| < 2^31, |zero| <= 255. */
static inline void v_store_codes(void *p, const vf v[4], int zero, bool is_signed) {
  for (int i = 0; i < 4; i++) {
    const float q = rintf(v[i]) + (float)zero, lo = is_signed ? -128 : 0, hi = is_signed ? 127 : 255;
    ((uint8_t *)p)[i] = (uint8_t)(int32_t)(q < lo ? lo : q > hi ? hi : q);
  }
}
/* The first two vectors' codes to p, the others' to q, which may be p: then the first remain. */
static inline void v_store_code_rows(void *p, void *q, const vf v[4], int zero, bool is_signed) {
  uint8_t codes[4];
  v_store_codes(codes, v, zero, is_signed);
  memcpy(q, codes + 2, 2);
  memcpy(p, codes, 2);
}
/* max(|v - round_half_even(v)|, far) */
static inline vf v_from_integer(vf v, vf far) { return fmaxf(fabsf(v - rintf(v)), far); }

/* 16-bit floats: a vector of them at any address. */
static inline vf v_load_f16(const void *p) { return hn_f16_to_f32(*(const uint16_t *)p); }
static inline vf v_load_bf16(const void *p) { return hn_bf16_to_f32(*(const uint16_t *)p); }
static inline void v_store_f16(void *p, vf v) { *(uint16_t *)p = hn_f32_to_f16(v); }
static inline void v_store_bf16(void *p, vf v) { *(uint16_t *)p = hn_f32_to_bf16(v); }

/* The lanes below n, as a mask. */
static inline bool v_any(vm m) { return m; }
static inline vm v_first(size_t n) { return n > 0; }

static inline vf v_sums(const vf v[1]) { return v[0]; }
static inline float v_hsum(vf a) { return a; }
static inline float v_hprod(vf a) { return a; }
static inline float v_hmax(vf a) { return a; }
static inline float v_hmin(vf a) { return a; }

#endif
