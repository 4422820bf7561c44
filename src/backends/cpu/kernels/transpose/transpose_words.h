/* Words of 16 bits for the tiers with 256-bit vectors: 16x16 tiles, and 8x8 where a matrix is narrower. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/transpose/transpose.h"

#define TILE2 16
#define TILE2_SMALL 8

/* Three rounds as of bytes: rows i and i + 4 come together, word by word. */
static inline void tile2_small(hn_bits2 *dst, ptrdiff_t ldd, const hn_bits2 *src, ptrdiff_t lds) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = _mm_loadu_si128((const __m128i *)(const void *)(src + i * lds));
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 4; i++) {
    a[2 * i] = _mm_unpacklo_epi16(b[i], b[i + 4]);
    a[2 * i + 1] = _mm_unpackhi_epi16(b[i], b[i + 4]);
  }
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(void *)(dst + i * ldd), b[i]);
}

/* Both halves of a vector go through the same three rounds: of rows 0-7, then of rows 8-15. Half h of o[i] is
 * column 8 h + i of eight rows. */
static inline void words_of_eight(__m256i *o, const hn_bits2 *src, ptrdiff_t lds) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = _mm256_loadu_si256((const __m256i *)(const void *)(src + i * lds));
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 4; i++) {
    a[2 * i] = _mm256_unpacklo_epi16(b[i], b[i + 4]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(b[i], b[i + 4]);
  }
  for (int i = 0; i < 4; i++) {
    o[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
    o[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
  }
}

static inline void tile2(hn_bits2 *dst, ptrdiff_t ldd, const hn_bits2 *src, ptrdiff_t lds) {
  __m256i upper[8], lower[8];
  words_of_eight(upper, src, lds);
  words_of_eight(lower, src + 8 * lds, lds);
  for (int i = 0; i < 8; i++) {
    _mm256_storeu_si256((__m256i *)(void *)(dst + i * ldd),
                        _mm256_permute2x128_si256(upper[i], lower[i], 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(dst + (i + 8) * ldd),
                        _mm256_permute2x128_si256(upper[i], lower[i], 0x31));
  }
}
