/* Tables of codes, avx512vnni tier: with VBMI the table as bytes, without as words. */
#include "backends/cpu/kernels/code_table/code_table.h"
#include "backends/cpu/kernels/features.h"

#include "base/fault.h"

#include <immintrin.h>

#define VBMI __attribute__((target("avx512vbmi")))

typedef struct quarters {
  __m512i q[4];
} quarters;

static inline __attribute__((always_inline)) quarters load(const uint8_t *table) {
  quarters t;
  for (int i = 0; i < 4; i++) t.q[i] = _mm512_loadu_si512(table + 64 * i);
  return t;
}

/* Each quarter of the table picks for all codes; the top two bits say which of them is meant. */
static VBMI inline __m512i look_up_64(__m512i x, const quarters *t) {
  const __mmask64 upper = _mm512_movepi8_mask(x), odd = _mm512_test_epi8_mask(x, _mm512_set1_epi8(0x40));
  const __m512i low = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(x, t->q[0]), odd, x, t->q[1]),
                high = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(x, t->q[2]), odd, x, t->q[3]);
  return _mm512_mask_mov_epi8(low, upper, high);
}

static VBMI inline void line(uint8_t *dst, const uint8_t *src, size_t n, const quarters *t) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(dst + i, look_up_64(_mm512_loadu_si512(src + i), t));
  if (i == n) return;
  const __mmask64 mask = ((__mmask64)1 << (n - i - (HN_FAULT("code_table_bytes_mask") ? 1 : 0))) - 1;
  _mm512_mask_storeu_epi8(dst + i, mask, look_up_64(_mm512_maskz_loadu_epi8(mask, src + i), t));
}

static VBMI void bytes(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table) {
  const quarters t = load(table);
  line(dst, src, n, &t);
}

/* Two rows of 32, the tiles' width, make one register. */
static VBMI void rows_of_bytes(uint8_t *y, ptrdiff_t pitch, size_t rows, size_t n, const uint8_t *table) {
  const quarters t = load(table);
  if (n == 32)
    for (; rows >= 2; rows -= 2, y += 2 * pitch) {
      const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)y),
                    b = _mm256_loadu_si256((const __m256i *)(const void *)(y + pitch));
      const __m512i z = look_up_64(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1), &t);
      _mm256_storeu_si256((__m256i *)(void *)y, _mm512_castsi512_si256(z));
      if (!HN_FAULT("code_table_second_row"))
        _mm256_storeu_si256((__m256i *)(void *)(y + pitch), _mm512_extracti64x4_epi64(z, 1));
    }
  for (; rows; rows--, y += pitch) line(y, y, n, &t);
}

static void look_up(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table) {
  if (hn_cpu()->vbmi)
    bytes(dst, src, n, table);
  else
    hn_code_table_find(HN_ISA_AVX512)->look_up(dst, src, n, table);
}

static void rows(uint8_t *y, ptrdiff_t pitch, size_t count, size_t n, const uint8_t *table) {
  if (hn_cpu()->vbmi)
    rows_of_bytes(y, pitch, count, n, table);
  else
    hn_code_table_find(HN_ISA_AVX512)->rows(y, pitch, count, n, table);
}

static const hn_code_table_ops ops = {look_up, rows};
const struct hn_kernel hn_kernel_code_table_avx512vnni = {.name = "code_table_avx512vnni",
                                                          .family = "code_table",
                                                          .role = "u8",
                                                          .isa = HN_ISA_AVX512VNNI,
                                                          .ops = &ops};
