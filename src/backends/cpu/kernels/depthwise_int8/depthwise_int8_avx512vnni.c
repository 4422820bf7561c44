/* VPDPBUSD on 256-bit vectors: 32 channels are the blocks that fit most networks, and 512-bit ones are no
 * faster where the instruction runs on one port of two. Where it runs on both they take a fifth off these
 * layers, and the clock of all others by a sixth (Xeon with AMX). */
#include <immintrin.h>

#include "backends/cpu/kernels/depthwise_int8/depthwise_int8.h"
#include "backends/cpu/kernels/template.h"

#define PIXELS 4
static inline __m256i dot(__m256i acc, __m256i a, __m256i b) { return _mm256_dpbusd_epi32(acc, a, b); }
static inline __m256i load_some(const uint8_t *p, uint32_t n) {
  return _mm256_maskz_loadu_epi8(n >= 32 ? 0xffffffffu : (1u << n) - 1, p);
}
static inline void store_some(uint8_t *p, __m256i v, uint32_t n) {
  _mm256_mask_storeu_epi8(p, n >= 32 ? 0xffffffffu : (1u << n) - 1, v);
}

#include "backends/cpu/kernels/depthwise_int8/dw8_row.inc"

static const hn_dw8_ops ops = {.rate = 2, .row = row};
const struct hn_kernel hn_kernel_depthwise_int8_avx512vnni = {"depthwise_int8_avx512vnni", "depthwise_int8",
                                                              "u8s8", HN_ISA_AVX512VNNI, &ops};
