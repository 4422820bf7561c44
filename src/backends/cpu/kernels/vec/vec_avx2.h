/* The eight-lane tier: AVX2 with FMA (see vec.h). */
#ifndef HN_VEC_AVX2_H
#define HN_VEC_AVX2_H

#include <stdbool.h>
#include <immintrin.h>

#define VEC_TIER avx2
#define VEC_W 8

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;

static inline vf v_set1(float x) { return _mm256_set1_ps(x); }
static inline vf v_zero(void) { return _mm256_setzero_ps(); }
static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline vi v_lanes_below(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf v_loadn(const float *p, size_t n) { return _mm256_maskload_ps(p, v_lanes_below(n)); }
static inline void v_storen(float *p, vf v, size_t n) { _mm256_maskstore_ps(p, v_lanes_below(n), v); }

static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline void v_fma_into(vf *sum, vf a, vf b) {
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(b));
}
static inline vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vm v_unord(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
static inline vf v_sel(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
/* maxps and minps return their second operand when either is NaN. */
static inline vf v_max_number(vf lo, vf x) { return _mm256_max_ps(lo, x); }
static inline vf v_min_number(vf hi, vf x) { return _mm256_min_ps(hi, x); }
static inline vf v_max(vf a, vf b) { return v_sel(v_unord(a), a, _mm256_max_ps(a, b)); }
static inline vf v_min(vf a, vf b) { return v_sel(v_unord(a), a, _mm256_min_ps(a, b)); }
static inline vf v_signbit(void) { return _mm256_castsi256_ps(_mm256_set1_epi32((int)0x80000000u)); }
static inline vf v_neg(vf a) { return _mm256_xor_ps(a, v_signbit()); }
static inline vf v_abs(vf a) { return _mm256_andnot_ps(v_signbit(), a); }
static inline vf v_copysign(vf mag, vf sign) {
  return _mm256_or_ps(_mm256_andnot_ps(v_signbit(), mag), _mm256_and_ps(v_signbit(), sign));
}
static inline vf v_floor(vf a) { return _mm256_floor_ps(a); }
static inline vf v_ceil(vf a) { return _mm256_ceil_ps(a); }
static inline vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf v_trunc(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

static inline vm v_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm v_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
static inline vm v_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vm v_ne(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }

/* p * 2^n for integer-valued n in [-252, 254], p near 1: two exact factors keep denormal results right. */
static inline vf v_scale2(vf p, vf n) {
  vi k = _mm256_cvtps_epi32(n);
  vi h = _mm256_srai_epi32(k, 1);
  vi bias = _mm256_set1_epi32(127);
  vf s1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23));
  vf s2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, h), bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(p, s1), s2);
}
/* The same for n in [-126, 127]. */
static inline vf v_scale2_normal(vf p, vf n) {
  const vi bits = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(bits));
}
/* p * 2^n, of t = n + 1.5 * 2^23, in whose lowest bits n stands; a normal number, for p near 1. 0 where x <
 * least; a NaN stays. */
static inline vf v_weigh(vf p, vf t, vf x, vf least) {
  const vi bits = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
  const vf rest = _mm256_max_ps(_mm256_setzero_ps(), x); /* x where it is no number: of two the second */
  return _mm256_blendv_ps(rest, _mm256_castsi256_ps(bits), _mm256_cmp_ps(x, least, _CMP_GE_OQ));
}
/* x = m * 2^e with m in [1, 2); x positive, finite, normal or denormal. */
static inline vf v_split_exponent(vf x, vf *e) {
  vm tiny = v_lt(x, v_set1(0x1p-126f));
  x = v_sel(tiny, v_mul(x, v_set1(0x1p24f)), x);
  vi bits = _mm256_castps_si256(x);
  vi k = _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127));
  *e = v_sub(_mm256_cvtepi32_ps(k), _mm256_and_ps(tiny, v_set1(24.0f)));
  bits =
      _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff)), _mm256_set1_epi32(0x3f800000));
  return _mm256_castsi256_ps(bits);
}

/* Bytes as numbers, and numbers of [-128, 255] as the low bytes of their integers. */
static inline vf v_load_i8(const void *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}
static inline vf v_load_u8(const void *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(p)));
}
static inline void v_store_8(void *p, vf v) {
  const __m256i low = _mm256_and_si256(_mm256_cvtps_epi32(v), _mm256_set1_epi32(255));
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64(p, _mm_packus_epi16(words, words));
}

/* saturate(round_half_even(v[i]) + zero), one code after the other; |v| < 2^31, |zero| <= 255. */
static inline __m256i v_codes(const vf v[4], int zero, bool is_signed) {
  const __m256i z = _mm256_set1_epi16((short)zero);
  const __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])),
                high = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
  const __m256i l = _mm256_adds_epi16(low, z), h = _mm256_adds_epi16(high, z);
  const __m256i codes = is_signed ? _mm256_packs_epi16(l, h) : _mm256_packus_epi16(l, h);
  return _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
static inline void v_store_codes(void *p, const vf v[4], int zero, bool is_signed) {
  _mm256_storeu_si256(p, v_codes(v, zero, is_signed));
}
/* The first two vectors' codes to p, the others' to q, which may be p: then the first remain. */
static inline void v_store_code_rows(void *p, void *q, const vf v[4], int zero, bool is_signed) {
  const __m256i codes = v_codes(v, zero, is_signed);
  _mm_storeu_si128(q, _mm256_extracti128_si256(codes, 1));
  _mm_storeu_si128(p, _mm256_castsi256_si128(codes));
}
/* max(|v - round_half_even(v)|, far) */
static inline vf v_from_integer(vf v, vf far) {
  return _mm256_max_ps(v_abs(_mm256_sub_ps(v, v_round(v))), far);
}

/* 16-bit floats: a vector of them at any address. */
static inline vf v_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
static inline vf v_load_bf16(const void *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
static inline void v_store_f16(void *p, vf v) {
  _mm_storeu_si128(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* To the nearest, ties to even; NaN stays NaN. */
static inline void v_store_bf16(void *p, vf v) {
  const __m256i u = _mm256_castps_si256(v),
                last = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i near = _mm256_add_epi32(u, _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i high = _mm256_srli_epi32(
      _mm256_blendv_epi8(near, quiet, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q))), 16);
  _mm_storeu_si128(p, _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
}

/* The lanes below n, as a mask. */
static inline bool v_any(vm m) { return _mm256_movemask_ps(m) != 0; }
static inline vm v_first(size_t n) { return _mm256_castsi256_ps(v_lanes_below(n)); }

/* Lane i is the sum of v[i]'s lanes, of as many vectors as there are lanes. */
static inline vf v_sums(const vf v[8]) {
  vf pair[4], four[2];
  for (int i = 0; i < 4; i++)
    pair[i] =
        _mm256_add_ps(_mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]), _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]));
  for (int i = 0; i < 2; i++) {
    const __m256d a = _mm256_castps_pd(pair[2 * i]), b = _mm256_castps_pd(pair[2 * i + 1]);
    four[i] =
        _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  return _mm256_add_ps(_mm256_permute2f128_ps(four[0], four[1], 0x20),
                       _mm256_permute2f128_ps(four[0], four[1], 0x31));
}

/* The lanes folded in halves: 8, 4, 2, 1. */
#define VEC_FOLD(a, op)                                                                                      \
  __m128 s = op##_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));                                \
  s = op##_ps(s, _mm_movehl_ps(s, s));                                                                       \
  return _mm_cvtss_f32(op##_ss(s, _mm_movehdup_ps(s)))
static inline float v_hsum(vf a) { VEC_FOLD(a, _mm_add); }
static inline float v_hprod(vf a) { VEC_FOLD(a, _mm_mul); }
static inline float v_hmax(vf a) {
  if (_mm256_movemask_ps(v_unord(a))) return __builtin_nanf("");
  VEC_FOLD(a, _mm_max);
}
static inline float v_hmin(vf a) {
  if (_mm256_movemask_ps(v_unord(a))) return __builtin_nanf("");
  VEC_FOLD(a, _mm_min);
}
#undef VEC_FOLD

#endif
