/* 16-float vectors under the names that the kernel templates use. */
#ifndef HN_KERNELS_VEC_AVX512_H
#define HN_KERNELS_VEC_AVX512_H
#include <immintrin.h>

#define V __m512
#define VW 16
#define MASK __mmask16
#define V_INLINE static inline __attribute__((always_inline, unused))

V_INLINE MASK v_mask(int n) { return (MASK)(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1); }
V_INLINE V v_zero(void) { return _mm512_setzero_ps(); }
V_INLINE V v_load(const float *p) { return _mm512_loadu_ps(p); }
V_INLINE V v_loadm(const float *p, MASK m) { return _mm512_maskz_loadu_ps(m, p); }
V_INLINE void v_store(float *p, V x) { _mm512_storeu_ps(p, x); }
V_INLINE void v_storem(float *p, V x, MASK m) { _mm512_mask_storeu_ps(p, m, x); }
V_INLINE V v_set1(const float *p) { return _mm512_set1_ps(*p); }
V_INLINE V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
V_INLINE V v_add(V a, V b) { return _mm512_add_ps(a, b); }
V_INLINE V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
V_INLINE V v_max(V a, V b) { return _mm512_max_ps(a, b); } /* NaN in either: b */
V_INLINE V v_min(V a, V b) { return _mm512_min_ps(a, b); }
V_INLINE V v_leaky(V x, V slope) {
  return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), x, slope);
}
#endif
