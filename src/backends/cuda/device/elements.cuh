/* Elements of every type. A value is a float (f32, f16, bf16), a double, or the integer itself; bool is u8.
 *   hn_get_<type>(p, i), hn_put_<type>(p, i, x)        one element in memory
 *   hn_word_<type>(r, k), hn_pack_<type>(r, x, n)      elements in 32-bit registers, as memory has them
 *   hn_value_<type>                                    the C type of a value
 *   hn_round_<type>(x)                                 the value of a float: integers saturate, NaN gives 0 */
#ifndef HN_ELEMENTS_CUH
#define HN_ELEMENTS_CUH

#include "math.cuh"

typedef float hn_value_f32, hn_value_f16, hn_value_bf16;
typedef double hn_value_f64;
typedef u8 hn_value_u8, hn_value_bool;
typedef i8 hn_value_i8;
typedef u16 hn_value_u16;
typedef i16 hn_value_i16;
typedef u32 hn_value_u32;
typedef i32 hn_value_i32;
typedef u64 hn_value_u64;
typedef i64 hn_value_i64;

/* Clears the registers of n elements of `size` bytes; constants after unrolling. */
HN_FN void hn_clear_words(u32 *r, int bytes) {
  HN_UNROLL for (int i = 0; i < (bytes + 3) / 4; i++) r[i] = 0;
}

#define HN_ELEMENTS_BELOW_32(name, T, V, U, of, to, bits)                                                    \
  HN_FN V hn_get_##name(const void *p, i64 i) { return of(((const T *)p)[i]); }                              \
  HN_FN void hn_put_##name(void *p, i64 i, V x) { ((T *)p)[i] = to(x); }                                     \
  HN_FN V hn_word_##name(const u32 *r, int k) {                                                              \
    return of((T)(r[k / (32 / bits)] >> (bits * (k % (32 / bits)))));                                        \
  }                                                                                                          \
  HN_FN void hn_pack_##name(u32 *r, const V *x, int n) {                                                     \
    hn_clear_words(r, n * bits / 8);                                                                         \
    HN_UNROLL for (int k = 0; k < n; k++) r[k / (32 / bits)] |= (u32)(U)to(x[k]) << (bits * (k % (32 / bits))); \
  }
#define HN_ELEMENTS_32(name, T, V, of, to)                                                                   \
  HN_FN V hn_get_##name(const void *p, i64 i) { return ((const T *)p)[i]; }                                  \
  HN_FN void hn_put_##name(void *p, i64 i, V x) { ((T *)p)[i] = x; }                                         \
  HN_FN V hn_word_##name(const u32 *r, int k) { return of(r[k]); }                                           \
  HN_FN void hn_pack_##name(u32 *r, const V *x, int n) {                                                     \
    HN_UNROLL for (int k = 0; k < n; k++) r[k] = to(x[k]);                                                   \
  }
#define HN_ELEMENTS_64(name, T, of, to)                                                                      \
  HN_FN T hn_get_##name(const void *p, i64 i) { return ((const T *)p)[i]; }                                  \
  HN_FN void hn_put_##name(void *p, i64 i, T x) { ((T *)p)[i] = x; }                                         \
  HN_FN T hn_word_##name(const u32 *r, int k) { return of((u64)r[2 * k + 1] << 32 | r[2 * k]); }             \
  HN_FN void hn_pack_##name(u32 *r, const T *x, int n) {                                                     \
    HN_UNROLL for (int k = 0; k < n; k++) r[2 * k] = (u32)to(x[k]), r[2 * k + 1] = (u32)(to(x[k]) >> 32);    \
  }

HN_FN double hn_double(u64 u) {
  union {
    u64 u;
    double d;
  } v;
  v.u = u;
  return v.d;
}
HN_FN u64 hn_double_bits(double d) {
  union {
    u64 u;
    double d;
  } v;
  v.d = d;
  return v.u;
}

/* The f32 of which f16 and bf16 are rounded as of x itself: what is inexact has an odd last bit. */
HN_FN float hn_odd_f32(double x) {
  float f = (float)x;
  u32 u = hn_bits(f);
  if ((double)f == x || x != x || u & 1) return f;
  return hn_from_bits((u >> 31 ? (double)f < x : (double)f > x) ? u - 1 : u + 1);
}

/* The same of integers, which may have more bits than a double. */
HN_FN double hn_odd_double(u64 x) { return (double)(x >> 53 && x & 0x7ff ? (x & ~0x7ffull) | 0x800 : x); }
HN_FN float hn_odd_f32_u64(u64 x) { return hn_odd_f32(hn_odd_double(x)); }
HN_FN float hn_odd_f32_i64(i64 x) {
  return x < 0 ? -hn_odd_f32(hn_odd_double(0 - (u64)x)) : hn_odd_f32(hn_odd_double((u64)x));
}

HN_ELEMENTS_BELOW_32(u8, u8, u8, u8, (u8), (u8), 8)
HN_ELEMENTS_BELOW_32(bool, u8, u8, u8, (u8), (u8), 8)
HN_ELEMENTS_BELOW_32(i8, i8, i8, u8, (i8), (i8), 8)
HN_ELEMENTS_BELOW_32(u16, u16, u16, u16, (u16), (u16), 16)
HN_ELEMENTS_BELOW_32(i16, i16, i16, u16, (i16), (i16), 16)
HN_ELEMENTS_32(f32, float, float, hn_from_bits, hn_bits)
HN_ELEMENTS_32(u32, u32, u32, (u32), (u32))
HN_ELEMENTS_32(i32, i32, i32, (i32), (u32))
HN_ELEMENTS_64(u64, u64, (u64), (u64))
HN_ELEMENTS_64(i64, i64, (i64), (u64))
HN_ELEMENTS_64(f64, double, hn_double, hn_double_bits)

HN_FN float hn_get_f16(const void *p, i64 i) { return hn_load_f16(p, i); }
HN_FN void hn_put_f16(void *p, i64 i, float x) { hn_store_f16(p, i, x); }
HN_FN float hn_word_f16(const u32 *r, int k) { return hn_f16((u16)(r[k / 2] >> (16 * (k % 2)))); }
HN_FN void hn_pack_f16(u32 *r, const float *x, int n) {
  HN_UNROLL for (int k = 0; k < n; k += 2) r[k / 2] = k + 1 < n ? hn_to_f16x2(x[k], x[k + 1]) : hn_to_f16(x[k]);
}
HN_FN float hn_get_bf16(const void *p, i64 i) { return hn_load_bf16(p, i); }
HN_FN void hn_put_bf16(void *p, i64 i, float x) { hn_store_bf16(p, i, x); }
HN_FN float hn_word_bf16(const u32 *r, int k) {
  return hn_from_bits(k % 2 ? r[k / 2] & 0xffff0000u : r[k / 2] << 16);
}
HN_FN void hn_pack_bf16(u32 *r, const float *x, int n) {
  HN_UNROLL for (int k = 0; k < n; k += 2) r[k / 2] = k + 1 < n ? hn_to_bf16x2(x[k], x[k + 1]) : hn_to_bf16(x[k]);
}

/* `bytes` (1 to 64, a power of two, known to the compiler) at an address that is a multiple of them, or of
 * 16. */
HN_FN void hn_ld_words(u32 *r, const void *p, int bytes) {
  if (bytes >= 16) {
    HN_UNROLL for (int i = 0; i < bytes / 16; i++) {
      hn_u4 v = hn_ld16((const u32 *)p + 4 * i);
      HN_UNROLL for (int k = 0; k < 4; k++) r[4 * i + k] = v.v[k];
    }
  } else if (bytes == 8) {
    u64 v = *(const u64 *)p;
    r[0] = (u32)v, r[1] = (u32)(v >> 32);
  } else {
    r[0] = bytes == 4 ? *(const u32 *)p : bytes == 2 ? *(const u16 *)p : *(const u8 *)p;
  }
}
HN_FN void hn_st_words(void *p, const u32 *r, int bytes) {
  if (bytes >= 16) {
    HN_UNROLL for (int i = 0; i < bytes / 16; i++) {
      hn_u4 v;
      HN_UNROLL for (int k = 0; k < 4; k++) v.v[k] = r[4 * i + k];
      hn_st16((u32 *)p + 4 * i, v);
    }
  } else if (bytes == 8) {
    *(u64 *)p = (u64)r[1] << 32 | r[0];
  } else if (bytes == 4) {
    *(u32 *)p = r[0];
  } else if (bytes == 2) {
    *(u16 *)p = (u16)r[0];
  } else {
    *(u8 *)p = (u8)r[0];
  }
}

/* The first n of `all` elements of `size` bytes, the rest zeros; and back. */
HN_FN void hn_ld_some(u32 *r, const void *p, int size, int all, int n) {
  hn_clear_words(r, all * size);
  HN_UNROLL for (int k = 0; k < all; k++) {
    if (k >= n) continue;
    if (size == 1) r[k / 4] |= (u32)((const u8 *)p)[k] << (8 * (k % 4));
    if (size == 2) r[k / 2] |= (u32)((const u16 *)p)[k] << (16 * (k % 2));
    if (size == 4) r[k] = ((const u32 *)p)[k];
    if (size == 8) r[2 * k] = ((const u32 *)p)[2 * k], r[2 * k + 1] = ((const u32 *)p)[2 * k + 1];
  }
}
HN_FN void hn_st_some(void *p, const u32 *r, int size, int all, int n) {
  HN_UNROLL for (int k = 0; k < all; k++) {
    if (k >= n) continue;
    if (size == 1) ((u8 *)p)[k] = (u8)(r[k / 4] >> (8 * (k % 4)));
    if (size == 2) ((u16 *)p)[k] = (u16)(r[k / 2] >> (16 * (k % 2)));
    if (size == 4) ((u32 *)p)[k] = r[k];
    if (size == 8) ((u32 *)p)[2 * k] = r[2 * k], ((u32 *)p)[2 * k + 1] = r[2 * k + 1];
  }
}

/* ---- conversions that are defined for every value */
HN_FN i64 hn_trunc_i64(double v) {
  return v >= 0x1p63 ? 0x7fffffffffffffffll : v > -0x1p63 ? (i64)v : v == v ? -0x7fffffffffffffffll - 1 : 0;
}
HN_FN u64 hn_trunc_u64(double v) { return v >= 0x1p64 ? ~0ull : v > 0.0 ? (u64)v : 0; }
HN_FN i64 hn_clamp_i64(double v, i64 low, i64 high) {
  i64 t = hn_trunc_i64(v);
  return t < low ? low : t > high ? high : t;
}
HN_FN float hn_round_f32(float x) { return x; }
HN_FN float hn_round_f16(float x) { return x; }
HN_FN float hn_round_bf16(float x) { return x; }
HN_FN double hn_round_f64(float x) { return x; }
HN_FN u8 hn_round_bool(float x) { return x != 0.0f; }
HN_FN u8 hn_round_u8(float x) { return (u8)hn_clamp_i64(x, 0, 255); }
HN_FN i8 hn_round_i8(float x) { return (i8)hn_clamp_i64(x, -128, 127); }
HN_FN u16 hn_round_u16(float x) { return (u16)hn_clamp_i64(x, 0, 65535); }
HN_FN i16 hn_round_i16(float x) { return (i16)hn_clamp_i64(x, -32768, 32767); }
HN_FN u32 hn_round_u32(float x) { return (u32)hn_clamp_i64(x, 0, 0xffffffffll); }
HN_FN i32 hn_round_i32(float x) { return (i32)hn_clamp_i64(x, -0x7fffffffll - 1, 0x7fffffffll); }
HN_FN u64 hn_round_u64(float x) { return hn_trunc_u64(x); }
HN_FN i64 hn_round_i64(float x) { return hn_trunc_i64(x); }

#endif
