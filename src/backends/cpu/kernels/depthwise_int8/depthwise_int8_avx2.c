/* Even and odd bytes as words, VPMADDWD twice. */
#include <immintrin.h>

#include "backends/cpu/kernels/depthwise_int8/depthwise_int8.h"
#include "backends/cpu/kernels/template.h"

#define PIXELS 2
static inline __m256i dot(__m256i acc, __m256i a, __m256i b) {
  const __m256i low = _mm256_set1_epi16(0xff);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, low),
                                         _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8)),
                odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
  return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}
/* Fours of the bytes, of which n / 4 count. */
static inline __m256i fours(uint32_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n / 4), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline __m256i load_some(const uint8_t *p, uint32_t n) {
  if (n % 4 == 0) return _mm256_maskload_epi32((const int *)(const void *)p, fours(n));
  uint8_t some[32] = {0};
  __builtin_memcpy(some, p, n);
  return _mm256_loadu_si256((const __m256i *)(const void *)some);
}
static inline void store_some(uint8_t *p, __m256i v, uint32_t n) {
  if (n % 4 == 0) {
    _mm256_maskstore_epi32((int *)(void *)p, fours(n), v);
    return;
  }
  uint8_t some[32];
  _mm256_storeu_si256((__m256i *)(void *)some, v);
  __builtin_memcpy(p, some, n);
}

#include "backends/cpu/kernels/depthwise_int8/dw8_row.inc"

static const hn_dw8_ops ops = {.rate = 0.6, .row = row};
const struct hn_kernel hn_kernel_depthwise_int8_avx2 = {"depthwise_int8_avx2", "depthwise_int8", "u8s8",
                                                        HN_ISA_AVX2, &ops};
