/* Transposes, AVX-512 tier: 16x16 tiles of 2-byte and 4-byte, 8x8 of 8-byte elements. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/cpu/kernels/transpose/transpose_bytes.h"
#include "backends/cpu/kernels/transpose/transpose_words.h"

#define TILE4 16
#define TILE8 8
#define PLANAR3 16

static inline __m512i load(const void *p) { return _mm512_loadu_si512(p); }
static inline void store(void *p, __m512i v) { _mm512_storeu_si512(p, v); }

/* The 128-bit blocks of four vectors transposed, twice: rows 0-3 become blocks of output group 0... */
static inline void blocks4(__m512i *o, __m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab0 = _mm512_shuffle_i32x4(a, b, 0x88), ab1 = _mm512_shuffle_i32x4(a, b, 0xdd);
  const __m512i cd0 = _mm512_shuffle_i32x4(c, d, 0x88), cd1 = _mm512_shuffle_i32x4(c, d, 0xdd);
  o[0] = _mm512_shuffle_i32x4(ab0, cd0, 0x88);
  o[1] = _mm512_shuffle_i32x4(ab1, cd1, 0x88);
  o[2] = _mm512_shuffle_i32x4(ab0, cd0, 0xdd);
  o[3] = _mm512_shuffle_i32x4(ab1, cd1, 0xdd);
}

static inline void tile4(hn_bits4 *dst, ptrdiff_t ldd, const hn_bits4 *src, ptrdiff_t lds) {
  __m512i r[16], t[16], o[4];
  for (int i = 0; i < 16; i++) r[i] = load(src + i * lds);
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) { /* r[4 i + j]: rows 4 i.., columns j, j + 4, j + 8, j + 12, one a block */
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int j = 0; j < 4; j++) {
    blocks4(o, r[j], r[4 + j], r[8 + j], r[12 + j]);
    for (int q = 0; q < 4; q++) store(dst + (4 * q + j) * ldd, o[q]);
  }
}

static inline void tile8(hn_bits8 *dst, ptrdiff_t ldd, const hn_bits8 *src, ptrdiff_t lds) {
  __m512i r[8], t[8], o[4];
  for (int i = 0; i < 8; i++) r[i] = load(src + i * lds);
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]);
  }
  for (int j = 0; j < 2; j++) {
    blocks4(o, t[j], t[2 + j], t[4 + j], t[6 + j]);
    for (int q = 0; q < 4; q++) store(dst + (2 * q + j) * ldd, o[q]);
  }
}

static const int32_t pixel_of[3][16] = {{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5},
                                        {5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10},
                                        {10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15}};

static inline void interleave_vec(uint32_t *dst, const uint32_t *pa, const uint32_t *pb, const uint32_t *pc) {
  const __m512i a = load(pa), b = load(pb), c = load(pc);
  static const uint16_t from_b[3] = {0x2492, 0x9249, 0x4924}, from_c[3] = {0x4924, 0x2492, 0x9249};
  for (int j = 0; j < 3; j++) {
    const __m512i at = load(pixel_of[j]);
    __m512i v = _mm512_permutexvar_epi32(at, a);
    v = _mm512_mask_permutexvar_epi32(v, from_b[j], at, b);
    store(dst + 16 * j, _mm512_mask_permutexvar_epi32(v, from_c[j], at, c));
  }
}

/* Lane l of plane k is element 3 l + k of 48: its low four bits pick the lane, the rest the vector. */
static inline void deinterleave_vec(uint32_t *pa, uint32_t *pb, uint32_t *pc, const uint32_t *src) {
  const __m512i x = load(src), y = load(src + 16), z = load(src + 32);
  uint32_t *const dst[3] = {pa, pb, pc};
  __m512i at = _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45);
  for (int k = 0; k < 3; k++, at = _mm512_add_epi32(at, _mm512_set1_epi32(1))) {
    const __m512i v = _mm512_permutex2var_epi32(x, at, y);
    const __mmask16 third = _mm512_cmpge_epi32_mask(at, _mm512_set1_epi32(32));
    store(dst[k], _mm512_mask_permutexvar_epi32(v, third, at, z));
  }
}

#include "backends/cpu/kernels/transpose/transpose_body.h"

const struct hn_kernel hn_kernel_transpose_avx512 = {
    .name = "transpose_avx512", .family = "transpose", .role = "bits", .isa = HN_ISA_AVX512, .ops = &table};
