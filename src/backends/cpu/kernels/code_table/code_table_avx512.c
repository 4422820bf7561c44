/* Tables of codes, avx512 tier: the table as 128 words in four registers, of which each code picks the word,
 * then the byte. */
#include "backends/cpu/kernels/code_table/code_table.h"

#include "base/fault.h"

#include <immintrin.h>

typedef struct words {
  __m512i w[4];
} words;

static inline __attribute__((always_inline)) __m256i look_up_32(__m256i codes, const words *t) {
  const __m512i x = _mm512_cvtepu8_epi16(codes), at = _mm512_srli_epi16(x, 1);
  const __m512i low = _mm512_permutex2var_epi16(t->w[0], at, t->w[1]),
                high = _mm512_permutex2var_epi16(t->w[2], at, t->w[3]);
  const __mmask32 upper = _mm512_test_epi16_mask(x, _mm512_set1_epi16(0x80));
  const __m512i pair = _mm512_mask_mov_epi16(low, upper, high);
  const __m512i shift = _mm512_slli_epi16(_mm512_and_si512(x, _mm512_set1_epi16(1)), 3);
  return _mm512_cvtepi16_epi8(_mm512_srlv_epi16(pair, shift));
}

static inline __attribute__((always_inline)) words load(const uint8_t *table) {
  words t;
  for (int i = 0; i < 4; i++) t.w[i] = _mm512_loadu_si512(table + 64 * i);
  return t;
}

static inline void line(uint8_t *dst, const uint8_t *src, size_t n, const words *t) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
    _mm256_storeu_si256((__m256i *)(void *)(dst + i), look_up_32(x, t));
  }
  if (i == n) return;
  const __mmask32 mask = (1u << (n - i - (HN_FAULT("code_table_mask") ? 1 : 0))) - 1;
  _mm256_mask_storeu_epi8(dst + i, mask, look_up_32(_mm256_maskz_loadu_epi8(mask, src + i), t));
}

static void look_up(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table) {
  const words t = load(table);
  line(dst, src, n, &t);
}

static void rows(uint8_t *y, ptrdiff_t pitch, size_t count, size_t n, const uint8_t *table) {
  const words t = load(table);
  for (; count; count--, y += pitch) line(y, y, n, &t);
}

static const hn_code_table_ops ops = {look_up, rows};
const struct hn_kernel hn_kernel_code_table_avx512 = {
    .name = "code_table_avx512", .family = "code_table", .role = "u8", .isa = HN_ISA_AVX512, .ops = &ops};
