/* Maxima of codes, avx512 tier. */
#include <immintrin.h>

enum { BYTES = 64 };
typedef __m512i bytes;
static inline bytes load(const void *p) { return _mm512_loadu_si512(p); }
static inline void store(void *p, bytes v) { _mm512_storeu_si512(p, v); }
static inline bytes max_u8(bytes a, bytes b) { return _mm512_max_epu8(a, b); }
static inline bytes max_i8(bytes a, bytes b) { return _mm512_max_epi8(a, b); }

#include "backends/cpu/kernels/pool_int8/pool_int8_body.h"

const struct hn_kernel hn_kernel_pool_int8_avx512 = {
    .name = "pool_int8_avx512", .family = "pool_int8", .role = "max", .isa = HN_ISA_AVX512, .ops = &table};
