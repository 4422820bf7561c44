/* Maxima of codes, avx512 tier. */
#include <immintrin.h>
#include <stddef.h>

enum { BYTES = 64 };
typedef __m512i bytes;
static inline bytes load(const void *p) { return _mm512_loadu_si512(p); }
static inline void store(void *p, bytes v) { _mm512_storeu_si512(p, v); }
static inline bytes load_some(const void *p, size_t n) { return _mm512_maskz_loadu_epi8((1ull << n) - 1, p); }
static inline void store_some(void *p, bytes v, size_t n) { _mm512_mask_storeu_epi8(p, (1ull << n) - 1, v); }
static inline bytes max_u8(bytes a, bytes b) { return _mm512_max_epu8(a, b); }
static inline bytes max_i8(bytes a, bytes b) { return _mm512_max_epi8(a, b); }

#include "backends/cpu/kernels/pool_int8/pool_int8_body.h"

const struct hn_kernel hn_kernel_pool_int8_avx512 = {
    .name = "pool_int8_avx512", .family = "pool_int8", .role = "max", .isa = HN_ISA_AVX512, .ops = &table};
