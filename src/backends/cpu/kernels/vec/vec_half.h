/* Half a vector: with AVX-512 eight floats in 256 bits, which take half of the time where vectors of 512 bits
 * are two. Narrower vectors have no halves (HALF is 0); the words are there all the same, of one float that
 * nobody computes with, so that a kernel is written once. */
#ifndef HN_VEC_HALF_H
#define HN_VEC_HALF_H

#include "backends/cpu/kernels/vec/vec.h"

#define INLINE static inline __attribute__((always_inline))

#if VEC_W == 16
enum { HALF = 8 };
typedef __m256 hf;
INLINE hf h_zero(void) { return _mm256_setzero_ps(); }
INLINE hf h_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE hf h_loadn(const float *p, size_t n) { return _mm256_maskz_loadu_ps((__mmask8)v_lanes_below(n), p); }
INLINE void h_store(float *p, hf x) { _mm256_storeu_ps(p, x); }
INLINE hf h_add(hf a, hf b) { return _mm256_add_ps(a, b); }
INLINE hf h_clamp(vf lo, vf hi, hf x) {
  return _mm256_min_ps(_mm512_castps512_ps256(hi), _mm256_max_ps(_mm512_castps512_ps256(lo), x));
}
/* As v_fma_spread (vec_spread.h). */
INLINE void h_fma_spread(hf *sum, const float *p, ptrdiff_t distance, const int rows, const int at, hf b) {
#if defined(HN_INSTRUMENTED)
  *sum = _mm256_fmadd_ps(_mm256_set1_ps(p[rows * distance + at]), b, *sum);
#else
  if (rows == 0)
    __asm__ volatile("vfmadd231ps %c2(%1)%{1to8%}, %3, %0"
                     : "+v"(*sum)
                     : "r"(p), "i"(4 * at), "v"(b)
                     : "memory");
  else if (rows == 1)
    __asm__ volatile("vfmadd231ps %c3(%1,%2,4)%{1to8%}, %4, %0"
                     : "+v"(*sum)
                     : "r"(p), "r"(distance), "i"(4 * at), "v"(b)
                     : "memory");
  else
    __asm__ volatile("vfmadd231ps %c3(%1,%2,8)%{1to8%}, %4, %0"
                     : "+v"(*sum)
                     : "r"(p), "r"(distance), "i"(4 * at), "v"(b)
                     : "memory");
#endif
}
#else
enum { HALF = 0 };
typedef float hf;
INLINE hf h_zero(void) { return 0; }
INLINE hf h_load(const float *p) { return *p; }
INLINE hf h_loadn(const float *p, size_t n) { return n ? *p : 0; }
INLINE void h_store(float *p, hf x) { *p = x; }
INLINE hf h_add(hf a, hf b) { return a + b; }
INLINE hf h_clamp(vf lo, vf hi, hf x) { return (void)lo, (void)hi, x; }
INLINE void h_fma_spread(hf *sum, const float *p, ptrdiff_t distance, const int rows, const int at, hf b) {
  *sum += p[rows * distance + at] * b;
}
#endif

#endif
