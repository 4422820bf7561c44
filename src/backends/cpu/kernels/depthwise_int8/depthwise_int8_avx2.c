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

#include "backends/cpu/kernels/depthwise_int8/dw8_some256.inc"

#include "backends/cpu/kernels/depthwise_int8/dw8_row.inc"

static const hn_dw8_ops ops = {.rate = 0.6, .row = row};
const struct hn_kernel hn_kernel_depthwise_int8_avx2 = {"depthwise_int8_avx2", "depthwise_int8", "u8s8",
                                                        HN_ISA_AVX2, &ops};
