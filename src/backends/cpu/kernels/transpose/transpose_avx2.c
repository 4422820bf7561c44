/* Transposes, AVX2 tier: 16x16 tiles of 2-byte, 8x8 of 4-byte and 4x4 of 8-byte elements. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/cpu/kernels/transpose/transpose_bytes.h"
#include "backends/cpu/kernels/transpose/transpose_words.h"

#define TILE4 8
#define TILE8 4
#define PLANAR3 8

static inline __m256i load(const void *p) { return _mm256_loadu_si256(p); }
static inline void store(void *p, __m256i v) { _mm256_storeu_si256(p, v); }

static inline void tile4(hn_bits4 *dst, ptrdiff_t ldd, const hn_bits4 *src, ptrdiff_t lds) {
  __m256i r[8], t[8];
  for (int i = 0; i < 8; i++) r[i] = load(src + i * lds);
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    store(dst + i * ldd, _mm256_permute2x128_si256(r[i], r[i + 4], 0x20));
    store(dst + (i + 4) * ldd, _mm256_permute2x128_si256(r[i], r[i + 4], 0x31));
  }
}

static inline void tile8(hn_bits8 *dst, ptrdiff_t ldd, const hn_bits8 *src, ptrdiff_t lds) {
  const __m256i r0 = load(src), r1 = load(src + lds), r2 = load(src + 2 * lds), r3 = load(src + 3 * lds);
  const __m256i a = _mm256_unpacklo_epi64(r0, r1), b = _mm256_unpackhi_epi64(r0, r1);
  const __m256i c = _mm256_unpacklo_epi64(r2, r3), d = _mm256_unpackhi_epi64(r2, r3);
  store(dst, _mm256_permute2x128_si256(a, c, 0x20));
  store(dst + ldd, _mm256_permute2x128_si256(b, d, 0x20));
  store(dst + 2 * ldd, _mm256_permute2x128_si256(a, c, 0x31));
  store(dst + 3 * ldd, _mm256_permute2x128_si256(b, d, 0x31));
}

/* Output vector j takes from each plane the pixels (8 j + lane) / 3; the plane of a lane is (8 j + lane) % 3.
 */
static inline void interleave_vec(uint32_t *dst, const uint32_t *pa, const uint32_t *pb, const uint32_t *pc) {
  const __m256i a = load(pa), b = load(pb), c = load(pc);
#define PICK(j, i0, i1, i2, i3, i4, i5, i6, i7, mb, mc)                                                      \
  do {                                                                                                       \
    const __m256i at = _mm256_setr_epi32(i0, i1, i2, i3, i4, i5, i6, i7);                                    \
    __m256i v = _mm256_permutevar8x32_epi32(a, at);                                                          \
    v = _mm256_blend_epi32(v, _mm256_permutevar8x32_epi32(b, at), mb);                                       \
    store(dst + 8 * (j), _mm256_blend_epi32(v, _mm256_permutevar8x32_epi32(c, at), mc));                     \
  } while (0)
  PICK(0, 0, 0, 0, 1, 1, 1, 2, 2, 0x92, 0x24);
  PICK(1, 2, 3, 3, 3, 4, 4, 4, 5, 0x24, 0x49);
  PICK(2, 5, 5, 6, 6, 6, 7, 7, 7, 0x49, 0x92);
#undef PICK
}

/* Lane l of plane k is element 3 l + k: vector (3 l + k) / 8, lane (3 l + k) % 8. */
static inline void deinterleave_vec(uint32_t *pa, uint32_t *pb, uint32_t *pc, const uint32_t *src) {
  const __m256i x = load(src), y = load(src + 8), z = load(src + 16);
#define PICK(dst, i0, i1, i2, i3, i4, i5, i6, i7, my, mz)                                                    \
  do {                                                                                                       \
    const __m256i at = _mm256_setr_epi32(i0, i1, i2, i3, i4, i5, i6, i7);                                    \
    __m256i v = _mm256_permutevar8x32_epi32(x, at);                                                          \
    v = _mm256_blend_epi32(v, _mm256_permutevar8x32_epi32(y, at), my);                                       \
    store(dst, _mm256_blend_epi32(v, _mm256_permutevar8x32_epi32(z, at), mz));                               \
  } while (0)
  PICK(pa, 0, 3, 6, 1, 4, 7, 2, 5, 0x38, 0xc0);
  PICK(pb, 1, 4, 7, 2, 5, 0, 3, 6, 0x18, 0xe0);
  PICK(pc, 2, 5, 0, 3, 6, 1, 4, 7, 0x1c, 0xe0);
#undef PICK
}

#include "backends/cpu/kernels/transpose/transpose_body.h"

const struct hn_kernel hn_kernel_transpose_avx2 = {
    .name = "transpose_avx2", .family = "transpose", .role = "bits", .isa = HN_ISA_AVX2, .ops = &table};
