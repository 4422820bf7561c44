/* Convolutions along rows of planes, AVX-512 tier. */
#include <string.h>

#include "backends/cpu/kernels/planes/planes.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define SIDE 3

static inline void put(float *y, __m256 v, uint32_t outputs) {
  if (outputs == 8)
    _mm256_storeu_ps(y, v);
  else
    _mm256_mask_storeu_ps(y, (__mmask8)((1u << outputs) - 1u), v);
}

static inline __attribute__((always_inline)) void turned(const vf a[8], float *y, int64_t pitch,
                                                         int64_t pixels, uint32_t outputs) {
  const __m512i even = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23),
                odd = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  vf four[2][4]; /* [half of the outputs][k]: of pixels k, 4 + k, 8 + k and 12 + k */
  HN_UNROLL for (int h = 0; h < 2; h++) {
    const vf *p = a + 4 * h;
    const __m512d lo0 = _mm512_castps_pd(_mm512_unpacklo_ps(p[0], p[1])),
                  hi0 = _mm512_castps_pd(_mm512_unpackhi_ps(p[0], p[1]));
    const __m512d lo1 = _mm512_castps_pd(_mm512_unpacklo_ps(p[2], p[3])),
                  hi1 = _mm512_castps_pd(_mm512_unpackhi_ps(p[2], p[3]));
    four[h][0] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo0, lo1));
    four[h][1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo0, lo1));
    four[h][2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi0, hi1));
    four[h][3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi0, hi1));
  }
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const vf first = _mm512_permutex2var_ps(four[0][k], even, four[1][k]),
             second = _mm512_permutex2var_ps(four[0][k], odd, four[1][k]);
    const __m256 at[4] = {_mm512_castps512_ps256(first), _mm512_extractf32x8_ps(first, 1),
                          _mm512_castps512_ps256(second), _mm512_extractf32x8_ps(second, 1)};
    if (pixels == VEC_W) {
      HN_UNROLL for (int q = 0; q < 4; q++) put(y + (4 * q + k) * pitch, at[q], outputs);
    } else {
      HN_UNROLL for (int q = 0; q < 4; q++) if (4 * q + k < pixels)
          put(y + (4 * q + k) * pitch, at[q], outputs);
    }
  }
}

enum { FARTHEST = 16 };

/* Sixteen values lie in `distance` vectors: each pair of these gives the lanes that its mask names. */
static inline __attribute__((always_inline)) void
spread_apart(float *to, const float *from, const size_t distance, size_t n, size_t limit) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i place = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)distance)),
                pair = _mm512_srli_epi32(place, 5);
  const size_t pairs = (distance + 1) / 2, all = VEC_W * distance;
  __mmask16 lanes[FARTHEST / 2];
  for (size_t j = 1; j < pairs; j++) lanes[j] = _mm512_cmpeq_epi32_mask(pair, _mm512_set1_epi32((int)j));
  size_t i = 0;
  for (; i + VEC_W <= n && limit >= all; i += VEC_W, to += VEC_W, from += all, limit -= all) {
    __m512 v = _mm512_setzero_ps();
    for (size_t j = 0; j < pairs; j++) {
      const __m512 a = _mm512_loadu_ps(from + 2 * j * VEC_W),
                   b = 2 * j + 1 < distance ? _mm512_loadu_ps(from + (2 * j + 1) * VEC_W) : a;
      const __m512 picked = _mm512_permutex2var_ps(a, place, b);
      v = j ? _mm512_mask_mov_ps(v, lanes[j], picked) : picked;
    }
    _mm512_storeu_ps(to, v);
  }
  for (; i < n; i++) *to++ = *from, from += distance;
  for (; i % VEC_W; i++) *to++ = 0;
}

static void spread(float *to, const float *from, size_t distance, size_t n, size_t limit) {
  switch (distance) {
  case 2: spread_apart(to, from, 2, n, limit); break;
  case 3: spread_apart(to, from, 3, n, limit); break;
  case 4: spread_apart(to, from, 4, n, limit); break;
  case 6: spread_apart(to, from, 6, n, limit); break;
  case 8: spread_apart(to, from, 8, n, limit); break;
  case 1:
    memcpy(to, from, n * sizeof *to);
    if (n % VEC_W) memset(to + n, 0, (VEC_W - n % VEC_W) * sizeof *to);
    break;
  default:
    if (distance <= FARTHEST) {
      spread_apart(to, from, distance, n, limit);
      break;
    }
    for (size_t i = 0; i < (n + VEC_W - 1) / VEC_W * VEC_W; i++) to[i] = i < n ? from[i * distance] : 0;
  }
}

#include "backends/cpu/kernels/planes/planes_body.h"

const struct hn_kernel hn_kernel_planes_f32_avx512 = {"planes_f32_avx512", "planes", "f32", HN_ISA_AVX512,
                                                      &ops};
