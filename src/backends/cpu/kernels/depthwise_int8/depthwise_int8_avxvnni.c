/* VPDPBUSD without AVX-512. */
#include <immintrin.h>

#include "backends/cpu/kernels/depthwise_int8/depthwise_int8.h"
#include "backends/cpu/kernels/template.h"

#define PIXELS 2
static inline __m256i dot(__m256i acc, __m256i a, __m256i b) { return _mm256_dpbusd_avx_epi32(acc, a, b); }

#include "backends/cpu/kernels/depthwise_int8/dw8_some256.inc"

#include "backends/cpu/kernels/depthwise_int8/dw8_row.inc"

static const hn_dw8_ops ops = {.rate = 2.7, .row = row};
const struct hn_kernel hn_kernel_depthwise_int8_avxvnni = {"depthwise_int8_avxvnni", "depthwise_int8", "u8s8",
                                                           HN_ISA_AVXVNNI, &ops};
