/* Maxima of codes, avx2 tier. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { BYTES = 32 };
typedef __m256i bytes;
static inline bytes load(const void *p) { return _mm256_loadu_si256(p); }
static inline void store(void *p, bytes v) { _mm256_storeu_si256(p, v); }
static inline bytes load_some(const void *p, size_t n) {
  uint8_t some[BYTES] = {0};
  __builtin_memcpy(some, p, n);
  return load(some);
}
static inline void store_some(void *p, bytes v, size_t n) {
  uint8_t some[BYTES];
  store(some, v);
  __builtin_memcpy(p, some, n);
}
static inline bytes max_u8(bytes a, bytes b) { return _mm256_max_epu8(a, b); }
static inline bytes max_i8(bytes a, bytes b) { return _mm256_max_epi8(a, b); }

#include "backends/cpu/kernels/pool_int8/pool_int8_body.h"

const struct hn_kernel hn_kernel_pool_int8_avx2 = {
    .name = "pool_int8_avx2", .family = "pool_int8", .role = "max", .isa = HN_ISA_AVX2, .ops = &table};
