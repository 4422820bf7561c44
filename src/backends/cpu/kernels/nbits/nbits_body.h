/* The body of nbits_<tier>.c: codes of few bits, which lie one after the other, as numbers. */
#include "backends/cpu/kernels/nbits/nbits.h"

#include <string.h>

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

#if VEC_W == 16
/* Codes i, i + 1... of a run, one a lane; p: the byte that holds the first. */
static inline vf spread(const uint8_t *p, size_t n, uint32_t bits, uint32_t flip) {
  static const uint8_t of[3][16] = {{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3},
                                    {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7},
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  const __m128i order = _mm_loadu_si128((const void *)of[bits >> 2]),
                bytes = _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p);
  const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
           shift = _mm512_mullo_epi32(_mm512_and_si512(lane, _mm512_set1_epi32((int)(8 / bits - 1))),
                                      _mm512_set1_epi32((int)bits)),
           codes = _mm512_and_si512(
               _mm512_srlv_epi32(_mm512_cvtepu8_epi32(_mm_shuffle_epi8(bytes, order)), shift),
               _mm512_set1_epi32((1 << bits) - 1));
  return _mm512_cvtepi32_ps(_mm512_xor_si512(codes, _mm512_set1_epi32((int)flip)));
}
#elif VEC_W == 8
static inline vf spread(const uint8_t *p, size_t n, uint32_t bits, uint32_t flip) {
  static const uint8_t of[3][16] = {
      {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7}};
  uint8_t part[8] = {0};
  memcpy(part, p, n);
  const __m128i bytes =
      _mm_shuffle_epi8(_mm_loadl_epi64((const void *)part), _mm_loadu_si128((const void *)of[bits >> 2]));
  const vi lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
           shift = _mm256_mullo_epi32(_mm256_and_si256(lane, _mm256_set1_epi32((int)(8 / bits - 1))),
                                      _mm256_set1_epi32((int)bits)),
           codes = _mm256_and_si256(_mm256_srlv_epi32(_mm256_cvtepu8_epi32(bytes), shift),
                                    _mm256_set1_epi32((1 << bits) - 1));
  return _mm256_cvtepi32_ps(_mm256_xor_si256(codes, _mm256_set1_epi32((int)flip)));
}
#endif

static void decode(float *dst, const uint8_t *codes, size_t n, uint32_t bits, uint32_t flip, float zero,
                   float scale) {
  const size_t each = 8 / bits;
#if VEC_W == 1
  for (size_t i = 0; i < n; i++) {
    const uint32_t code = (uint32_t)codes[i / each] >> (i % each * bits) & ((1u << bits) - 1);
    dst[i] = ((float)(code ^ flip) - zero) * scale;
  }
#else
  const vf z = v_set1(zero), s = v_set1(scale);
  for (size_t i = 0; i < n; i += VEC_W) {
    const size_t take = n - i < VEC_W ? n - i : VEC_W;
    const vf v = v_mul(v_sub(spread(codes + i / each, (take + each - 1) / each, bits, flip), z), s);
    v_storen(dst + i, v, HN_FAULT("nbits_decode_tail") && take < VEC_W ? take - 1 : take);
  }
#endif
}

static const hn_nbits_ops table = {.decode = decode};
