/* The sixteen-lane tier: AVX-512 F/BW/DQ/VL (see vec.h). */
#ifndef HN_VEC_AVX512_H
#define HN_VEC_AVX512_H

#include <stdbool.h>
#include <immintrin.h>

#define VEC_TIER avx512
#define VEC_W 16

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vf v_set1(float x) { return _mm512_set1_ps(x); }
static inline vf v_zero(void) { return _mm512_setzero_ps(); }
static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline __mmask16 v_lanes_below(size_t n) { return (__mmask16)((1u << n) - 1u); }
static inline vf v_loadn(const float *p, size_t n) { return _mm512_maskz_loadu_ps(v_lanes_below(n), p); }
static inline void v_storen(float *p, vf v, size_t n) { _mm512_mask_storeu_ps(p, v_lanes_below(n), v); }

static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline void v_fma_into(vf *sum, vf a, vf b) {
  __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}
static inline vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline vm v_unord(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline vf v_sel(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
/* vmaxps and vminps return their second operand when either is NaN. */
static inline vf v_max_number(vf lo, vf x) { return _mm512_max_ps(lo, x); }
static inline vf v_min_number(vf hi, vf x) { return _mm512_min_ps(hi, x); }
static inline vf v_max(vf a, vf b) { return v_sel(v_unord(a), a, _mm512_max_ps(a, b)); }
static inline vf v_min(vf a, vf b) { return v_sel(v_unord(a), a, _mm512_min_ps(a, b)); }
static inline vf v_signbit(void) { return _mm512_castsi512_ps(_mm512_set1_epi32((int)0x80000000u)); }
static inline vf v_neg(vf a) { return _mm512_xor_ps(a, v_signbit()); }
static inline vf v_abs(vf a) { return _mm512_andnot_ps(v_signbit(), a); }
static inline vf v_copysign(vf mag, vf sign) {
  return _mm512_or_ps(_mm512_andnot_ps(v_signbit(), mag), _mm512_and_ps(v_signbit(), sign));
}
static inline vf v_floor(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf v_ceil(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
static inline vf v_round(vf a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf v_trunc(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

static inline vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm v_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vm v_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vm v_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }

/* p * 2^n, rounded once, for integer-valued n. */
static inline vf v_scale2(vf p, vf n) { return _mm512_scalef_ps(p, n); }
static inline vf v_scale2_normal(vf p, vf n) { return v_scale2(p, n); }
/* p * 2^n, of t = n + 1.5 * 2^23, in whose lowest bits n stands; a normal number, for p near 1. 0 where x <
 * least; a NaN stays. */
static inline vf v_weigh(vf p, vf t, vf x, vf least) {
  const vm kept = _mm512_cmp_ps_mask(x, least, _CMP_GE_OQ);
  const vf rest = _mm512_max_ps(_mm512_setzero_ps(), x); /* x where it is no number: of two the second */
  return _mm512_castsi512_ps(_mm512_mask_add_epi32(_mm512_castps_si512(rest), kept, _mm512_castps_si512(p),
                                                   _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}
/* x = m * 2^e with m in [1, 2); x positive, finite, normal or denormal. */
static inline vf v_split_exponent(vf x, vf *e) {
  *e = _mm512_getexp_ps(x);
  return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
}

/* Bytes as numbers, and numbers of [-128, 255] as the low bytes of their integers. */
static inline vf v_load_i8(const void *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}
static inline vf v_load_u8(const void *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p)));
}
static inline void v_store_8(void *p, vf v) {
  _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}

/* saturate(round_half_even(v[i]) + zero), one code after the other; |v| < 2^31, |zero| <= 255. */
static inline __m512i v_codes(const vf v[4], int zero, bool is_signed) {
  const __m512i z = _mm512_set1_epi16((short)zero);
  const __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1])),
                high = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  const __m512i l = _mm512_adds_epi16(low, z), h = _mm512_adds_epi16(high, z);
  const __m512i codes = is_signed ? _mm512_packs_epi16(l, h) : _mm512_packus_epi16(l, h);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, codes);
}
static inline void v_store_codes(void *p, const vf v[4], int zero, bool is_signed) {
  _mm512_storeu_si512(p, v_codes(v, zero, is_signed));
}
/* The first two vectors' codes to p, the others' to q, which may be p: then the first remain. */
static inline void v_store_code_rows(void *p, void *q, const vf v[4], int zero, bool is_signed) {
  const __m512i codes = v_codes(v, zero, is_signed);
  _mm256_storeu_si256(q, _mm512_extracti64x4_epi64(codes, 1));
  _mm256_storeu_si256(p, _mm512_castsi512_si256(codes));
}
/* max(|v - round_half_even(v)|, far) */
static inline vf v_from_integer(vf v, vf far) {
  return _mm512_range_ps(_mm512_reduce_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), far, 0xb);
}

/* 16-bit floats: a vector of them at any address. */
static inline vf v_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
static inline vf v_load_bf16(const void *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
static inline void v_store_f16(void *p, vf v) {
  _mm256_storeu_si256(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* To the nearest, ties to even; NaN stays NaN. */
static inline void v_store_bf16(void *p, vf v) {
  const __m512i u = _mm512_castps_si512(v),
                last = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(u, _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(p,
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(
                          _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), near, quiet), 16)));
}

/* The lanes below n, as a mask. */
static inline bool v_any(vm m) { return m != 0; }
static inline vm v_first(size_t n) { return v_lanes_below(n); }

/* Lane i is the sum of v[i]'s lanes, of as many vectors as there are lanes. */
static inline vf v_sums(const vf v[16]) {
  vf pair[8], four[4], half[2];
  for (int i = 0; i < 8; i++) /* in each block of four lanes: v[2 i], v[2 i + 1], and both once more */
    pair[i] =
        _mm512_add_ps(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]));
  for (int i = 0; i < 4; i++) {
    const __m512d a = _mm512_castps_pd(pair[2 * i]), b = _mm512_castps_pd(pair[2 * i + 1]);
    four[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  for (int i = 0; i < 2; i++)
    half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0x88),
                            _mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(half[0], half[1], 0x88),
                       _mm512_shuffle_f32x4(half[0], half[1], 0xdd));
}

static inline float v_hsum(vf a) { return _mm512_reduce_add_ps(a); }
static inline float v_hprod(vf a) { return _mm512_reduce_mul_ps(a); }
static inline float v_hmax(vf a) { return v_unord(a) ? __builtin_nanf("") : _mm512_reduce_max_ps(a); }
static inline float v_hmin(vf a) { return v_unord(a) ? __builtin_nanf("") : _mm512_reduce_min_ps(a); }

#endif
