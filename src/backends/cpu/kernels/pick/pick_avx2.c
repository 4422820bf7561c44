/* Picked elements, avx2 tier. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define WIDTH 8

typedef __m256i words;
typedef __m256i lanes;

static inline words nothing(void) { return _mm256_setzero_si256(); }
static inline lanes lanes_of(uint32_t bits) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), bit), bit);
}
static inline lanes lanes_below(uint32_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline words read(const uint32_t *p, lanes live) {
  return _mm256_maskload_epi32((const int *)(const void *)p, live);
}
static inline words places(const int32_t *from) {
  return _mm256_loadu_si256((const __m256i *)(const void *)from);
}
static inline words take(words was, lanes which, words from, words v) {
  return _mm256_blendv_epi8(was, _mm256_permutevar8x32_epi32(v, from), which);
}
static inline void write(uint32_t *p, words v, lanes n) { _mm256_maskstore_epi32((int *)(void *)p, n, v); }
static inline void write_all(uint32_t *p, words v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }

#include "backends/cpu/kernels/pick/pick_body.h"

const struct hn_kernel hn_kernel_pick_avx2 = {
    .name = "pick_avx2", .family = "pick", .role = "words", .isa = HN_ISA_AVX2, .ops = &table};
