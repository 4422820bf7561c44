/* Convolutions along rows of planes, AVX2 tier. */
#include "backends/cpu/kernels/planes/planes.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "backends/cpu/kernels/planes/planes_spread.h"

#define SIDE 1

static inline __attribute__((always_inline)) void turned(const vf a[8], float *y, int64_t pitch,
                                                         int64_t pixels, uint32_t outputs) {
  vf four[2][4]; /* [half of the outputs][k]: of pixels k and 4 + k */
  HN_UNROLL for (int h = 0; h < 2; h++) {
    const vf *p = a + 4 * h;
    const __m256d lo0 = _mm256_castps_pd(_mm256_unpacklo_ps(p[0], p[1])),
                  hi0 = _mm256_castps_pd(_mm256_unpackhi_ps(p[0], p[1]));
    const __m256d lo1 = _mm256_castps_pd(_mm256_unpacklo_ps(p[2], p[3])),
                  hi1 = _mm256_castps_pd(_mm256_unpackhi_ps(p[2], p[3]));
    four[h][0] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo0, lo1));
    four[h][1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo0, lo1));
    four[h][2] = _mm256_castpd_ps(_mm256_unpacklo_pd(hi0, hi1));
    four[h][3] = _mm256_castpd_ps(_mm256_unpackhi_pd(hi0, hi1));
  }
  HN_UNROLL for (int k = 0; k < 4; k++) {
    const vf at[2] = {_mm256_permute2f128_ps(four[0][k], four[1][k], 0x20),
                      _mm256_permute2f128_ps(four[0][k], four[1][k], 0x31)};
    HN_UNROLL for (int q = 0; q < 2; q++) {
      float *to = y + (4 * q + k) * pitch;
      if (4 * q + k >= pixels) continue;
      if (outputs == 8)
        v_store(to, at[q]);
      else
        v_storen(to, at[q], outputs);
    }
  }
}

#include "backends/cpu/kernels/planes/planes_body.h"

const struct hn_kernel hn_kernel_planes_f32_avx2 = {"planes_f32_avx2", "planes", "f32", HN_ISA_AVX2, &ops};
