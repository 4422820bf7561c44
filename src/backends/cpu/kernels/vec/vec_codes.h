/* Codes of 16 bits, and quotients by one number: what quantisation alone needs of vectors. */
#ifndef HN_VEC_CODES_H
#define HN_VEC_CODES_H

#include "backends/cpu/kernels/vec/vec.h"

#include <string.h>

/* v_over(x, over): x / s in f32 where over = 1 / s in f64: the product is off by less than 2^-51 of itself,
 * while a quotient of two f32 lies 2^-49 or more from the middle between two. s from 2^-100 to 2^100; what is
 * subnormal may be off by one. */
#if VEC_W == 16
static inline vf v_over(vf x, double over) {
  const __m512d by = _mm512_set1_pd(over);
  const __m256 low = _mm512_castps512_ps256(x),
               high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  const __m256 a = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(low), by)),
               b = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(high), by));
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(a)), _mm256_castps_pd(b), 1));
}

/* Codes of 16 bits: a vector of them at any address. */
static inline vf v_load_u16(const void *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)));
}
static inline vf v_load_i16(const void *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256(p)));
}
static inline void v_store_16(void *p, vf v) {
  _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v)));
}
#elif VEC_W == 8
static inline vf v_over(vf x, double over) {
  const __m256d by = _mm256_set1_pd(over);
  const __m128 a = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), by)),
               b = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)), by));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
}

/* Codes of 16 bits: a vector of them at any address. */
static inline vf v_load_u16(const void *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)));
}
static inline vf v_load_i16(const void *p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(p)));
}
static inline void v_store_16(void *p, vf v) {
  const __m256i low = _mm256_and_si256(_mm256_cvtps_epi32(v), _mm256_set1_epi32(65535));
  _mm_storeu_si128(p, _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}
#else
static inline vf v_over(vf x, double over) { return (float)((double)x * over); }

/* Codes of 16 bits at any address. */
static inline vf v_load_u16(const void *p) {
  uint16_t code;
  memcpy(&code, p, sizeof code);
  return (float)code;
}
static inline vf v_load_i16(const void *p) {
  int16_t code;
  memcpy(&code, p, sizeof code);
  return (float)code;
}
static inline void v_store_16(void *p, vf v) {
  const uint16_t code = (uint16_t)(int32_t)v;
  memcpy(p, &code, sizeof code);
}
#endif

#endif
