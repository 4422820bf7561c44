/* VPDPBUSD: four u8 x s8 products and their sum in one instruction. */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

static inline __m512i dot(__m512i acc, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(acc, a, b); }

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_store.inc"
#include "backends/cpu/kernels/gemm_int8/int8_sums512.inc"
#include "backends/cpu/kernels/gemm_int8/int8_tile512.inc"

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 32,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 4,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_avx512vnni = {"gemm_int8_avx512vnni", "gemm_int8", "u8s8",
                                                         HN_ISA_AVX512VNNI, &ops};
