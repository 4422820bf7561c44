/* Picked elements, avx512 tier. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define WIDTH 16

typedef __m512i words;
typedef __mmask16 lanes;

static inline words nothing(void) { return _mm512_setzero_si512(); }
static inline lanes lanes_of(uint32_t bits) { return (lanes)bits; }
static inline lanes lanes_below(uint32_t n) { return (lanes)((1u << n) - 1u); }
static inline words read(const uint32_t *p, lanes live) { return _mm512_maskz_loadu_epi32(live, p); }
static inline words places(const int32_t *from) { return _mm512_loadu_si512(from); }
static inline words take(words was, lanes which, words from, words v) {
  return _mm512_mask_permutexvar_epi32(was, which, from, v);
}
static inline void write(uint32_t *p, words v, lanes n) { _mm512_mask_storeu_epi32(p, n, v); }
static inline void write_all(uint32_t *p, words v) { _mm512_storeu_si512(p, v); }

#include "backends/cpu/kernels/pick/pick_body.h"

const struct hn_kernel hn_kernel_pick_avx512 = {
    .name = "pick_avx512", .family = "pick", .role = "words", .isa = HN_ISA_AVX512, .ops = &table};
