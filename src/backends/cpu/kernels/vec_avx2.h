/* 8-float vectors under the names that the kernel templates use. */
#ifndef HN_KERNELS_VEC_AVX2_H
#define HN_KERNELS_VEC_AVX2_H
#include <immintrin.h>

#define V __m256
#define VW 8
#define MASK int /* number of live elements, 0..8 */
#define V_INLINE static inline __attribute__((always_inline, unused))

V_INLINE MASK v_mask(int n) { return n >= 8 ? 8 : n <= 0 ? 0 : n; }
V_INLINE __m256i v_lanes(MASK m) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(m), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE V v_zero(void) { return _mm256_setzero_ps(); }
V_INLINE V v_load(const float *p) { return _mm256_loadu_ps(p); }
/* The full case avoids the masked forms, which are slow on some processors. */
V_INLINE V v_loadm(const float *p, MASK m) {
  return m == 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, v_lanes(m));
}
V_INLINE void v_store(float *p, V x) { _mm256_storeu_ps(p, x); }
V_INLINE void v_storem(float *p, V x, MASK m) {
  if (m == 8) _mm256_storeu_ps(p, x);
  else _mm256_maskstore_ps(p, v_lanes(m), x);
}
V_INLINE V v_set1(const float *p) { return _mm256_broadcast_ss(p); }
V_INLINE V v_fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
V_INLINE V v_add(V a, V b) { return _mm256_add_ps(a, b); }
V_INLINE V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
V_INLINE V v_max(V a, V b) { return _mm256_max_ps(a, b); } /* NaN in either: b */
V_INLINE V v_min(V a, V b) { return _mm256_min_ps(a, b); }
V_INLINE V v_leaky(V x, V slope) {
  return _mm256_blendv_ps(x, _mm256_mul_ps(x, slope), _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}
#endif
