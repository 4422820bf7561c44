/* Bytes in 128-bit vectors, for the tiers that have PSHUFB: 16x16 tiles, and three planes to pixels and back.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define TILE1 16
#define PLANAR3_BYTES 16

static inline __m128i load16(const void *p) { return _mm_loadu_si128(p); }
static inline void store16(void *p, __m128i v) { _mm_storeu_si128(p, v); }

/* Four rounds: each brings rows i and i + 8 together, byte by byte, as rows 2 i and 2 i + 1. */
static inline void tile1(uint8_t *dst, ptrdiff_t ldd, const uint8_t *src, ptrdiff_t lds) {
  __m128i a[16], b[16];
  for (int i = 0; i < 16; i++) a[i] = load16(src + i * lds);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 8; i++) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (int i = 0; i < 8; i++) {
      a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]);
      a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
  }
  for (int i = 0; i < 16; i++) store16(dst + i * ldd, a[i]);
}

/* Byte i of output vector j is pixel (16 j + i) / 3 of plane (16 j + i) % 3; -1: of another plane. */
#define N -1
static const int8_t pixels_to[3][3][16] = {{{0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N, N, 5},
                                            {N, 0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N, N},
                                            {N, N, 0, N, N, 1, N, N, 2, N, N, 3, N, N, 4, N}},
                                           {{N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N, 10, N},
                                            {5, N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N, 10},
                                            {N, 5, N, N, 6, N, N, 7, N, N, 8, N, N, 9, N, N}},
                                           {{N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15, N, N},
                                            {N, N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15, N},
                                            {10, N, N, 11, N, N, 12, N, N, 13, N, N, 14, N, N, 15}}};
/* Pixel i of plane k is byte 3 i + k of 48: of input vector j the bytes below 16 (j + 1). */
static const int8_t planes_to[3][3][16] = {{{0, 3, 6, 9, 12, 15, N, N, N, N, N, N, N, N, N, N},
                                            {N, N, N, N, N, N, 2, 5, 8, 11, 14, N, N, N, N, N},
                                            {N, N, N, N, N, N, N, N, N, N, N, 1, 4, 7, 10, 13}},
                                           {{1, 4, 7, 10, 13, N, N, N, N, N, N, N, N, N, N, N},
                                            {N, N, N, N, N, 0, 3, 6, 9, 12, 15, N, N, N, N, N},
                                            {N, N, N, N, N, N, N, N, N, N, N, 2, 5, 8, 11, 14}},
                                           {{2, 5, 8, 11, 14, N, N, N, N, N, N, N, N, N, N, N},
                                            {N, N, N, N, N, 1, 4, 7, 10, 13, N, N, N, N, N, N},
                                            {N, N, N, N, N, N, N, N, N, N, 0, 3, 6, 9, 12, 15}}};
#undef N

static inline __m128i of_three(const int8_t at[3][16], __m128i a, __m128i b, __m128i c) {
  return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, load16(at[0])), _mm_shuffle_epi8(b, load16(at[1]))),
                      _mm_shuffle_epi8(c, load16(at[2])));
}

static inline void interleave_bytes(uint8_t *dst, const uint8_t *pa, const uint8_t *pb, const uint8_t *pc) {
  const __m128i a = load16(pa), b = load16(pb), c = load16(pc);
  for (int j = 0; j < 3; j++) store16(dst + 16 * j, of_three(pixels_to[j], a, b, c));
}

static inline void deinterleave_bytes(uint8_t *pa, uint8_t *pb, uint8_t *pc, const uint8_t *src) {
  const __m128i x = load16(src), y = load16(src + 16), z = load16(src + 32);
  store16(pa, of_three(planes_to[0], x, y, z));
  store16(pb, of_three(planes_to[1], x, y, z));
  store16(pc, of_three(planes_to[2], x, y, z));
}
