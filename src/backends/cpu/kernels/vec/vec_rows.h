/* Many short rows at once: one vector of sums a row becomes one vector of all rows' results. Folding each by
 * itself takes as many dependent steps as a vector has halvings, a row; together they share them. */
#ifndef HN_VEC_ROWS_H
#define HN_VEC_ROWS_H

#include "backends/cpu/kernels/vec/vec.h"

/* static vf NAME(const vf s[VEC_W]): lane r is join over all lanes of s[r]. */
#if VEC_W == 16
#define VEC_FOLD_ROWS(NAME, join)                                                                            \
  static inline vf NAME(const vf *s) {                                                                       \
    vf q[4], h[2];                                                                                           \
    for (int i = 0; i < 4; i++) { /* quarters of four rows */                                                \
      const vf a = s[4 * i], b = s[4 * i + 1], c = s[4 * i + 2], d = s[4 * i + 3];                           \
      const __m512d ab = _mm512_castps_pd(join(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));         \
      const __m512d cd = _mm512_castps_pd(join(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));         \
      q[i] =                                                                                                 \
          join(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));  \
    }                                                                                                        \
    for (int i = 0; i < 2; i++)                                                                              \
      h[i] = join(_mm512_shuffle_f32x4(q[2 * i], q[2 * i + 1], 0x88),                                        \
                  _mm512_shuffle_f32x4(q[2 * i], q[2 * i + 1], 0xdd));                                       \
    return join(_mm512_shuffle_f32x4(h[0], h[1], 0x88), _mm512_shuffle_f32x4(h[0], h[1], 0xdd));             \
  }
#elif VEC_W == 8
#define VEC_FOLD_ROWS(NAME, join)                                                                            \
  static inline vf NAME(const vf *s) {                                                                       \
    vf q[2];                                                                                                 \
    for (int i = 0; i < 2; i++) { /* halves of four rows */                                                  \
      const vf a = s[4 * i], b = s[4 * i + 1], c = s[4 * i + 2], d = s[4 * i + 3];                           \
      const __m256d ab = _mm256_castps_pd(join(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));         \
      const __m256d cd = _mm256_castps_pd(join(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)));         \
      q[i] =                                                                                                 \
          join(_mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)), _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)));  \
    }                                                                                                        \
    return join(_mm256_permute2f128_ps(q[0], q[1], 0x20), _mm256_permute2f128_ps(q[0], q[1], 0x31));         \
  }
#else
#define VEC_FOLD_ROWS(NAME, join)                                                                            \
  static inline vf NAME(const vf *s) { return s[0]; }
#endif

#endif
