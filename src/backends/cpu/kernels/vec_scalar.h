/* "Vectors" of one float under the names that the kernel templates use. */
#ifndef HN_KERNELS_VEC_SCALAR_H
#define HN_KERNELS_VEC_SCALAR_H

#define V float
#define VW 1
#define MASK int
#define V_INLINE static inline __attribute__((always_inline, unused))

V_INLINE MASK v_mask(int n) { return n > 0; }
V_INLINE V v_zero(void) { return 0.0f; }
V_INLINE V v_load(const float *p) { return *p; }
V_INLINE V v_loadm(const float *p, MASK m) { return m ? *p : 0.0f; }
V_INLINE void v_store(float *p, V x) { *p = x; }
V_INLINE void v_storem(float *p, V x, MASK m) {
  if (m) *p = x;
}
V_INLINE V v_set1(const float *p) { return *p; }
V_INLINE V v_fma(V a, V b, V c) { return a * b + c; }
V_INLINE V v_add(V a, V b) { return a + b; }
V_INLINE V v_mul(V a, V b) { return a * b; }
V_INLINE V v_max(V a, V b) { return a > b ? a : b; } /* NaN in either: b */
V_INLINE V v_min(V a, V b) { return a < b ? a : b; }
V_INLINE V v_leaky(V x, V slope) { return x < 0.0f ? x * slope : x; }
#endif
