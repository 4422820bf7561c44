/* Tables of codes, avx2 tier: sixteen tables of 16 bytes, each of which gives 0 for the codes of the others.
 */
#include "backends/cpu/kernels/code_table/code_table.h"

#include "base/fault.h"

#include <immintrin.h>
#include <string.h>

static __m256i look_up_32(__m256i x, const uint8_t *table) {
  const __m256i step = _mm256_set1_epi8(16), above = _mm256_set1_epi8(0x70);
  __m256i y = _mm256_setzero_si256();
  for (int i = 0; i < 16; i++) {
    const __m256i part =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table + 16 * i)));
    /* 0..15 become 0x70..0x7f, all else has its top bit set, which gives 0 */
    y = _mm256_or_si256(y, _mm256_shuffle_epi8(part, _mm256_adds_epu8(x, above)));
    x = _mm256_sub_epi8(x, step);
  }
  return y;
}

static void look_up(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
    _mm256_storeu_si256((__m256i *)(void *)(dst + i), look_up_32(x, table));
  }
  for (n -= HN_FAULT("code_table_tail") && n > i ? 1 : 0; i < n; i++) dst[i] = table[src[i]];
}

static void rows(uint8_t *y, ptrdiff_t pitch, size_t count, size_t n, const uint8_t *table) {
  for (; count; count--, y += pitch) look_up(y, y, n, table);
}

static const hn_code_table_ops ops = {look_up, rows};
const struct hn_kernel hn_kernel_code_table_avx2 = {
    .name = "code_table_avx2", .family = "code_table", .role = "u8", .isa = HN_ISA_AVX2, .ops = &ops};
