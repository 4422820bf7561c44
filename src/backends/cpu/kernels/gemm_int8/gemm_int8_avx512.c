/* Without VNNI: even and odd bytes as words, VPMADDWD twice.  (VPMADDUBSW would saturate.) */
#include <immintrin.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/kernels/template.h"

static inline __m512i dot(__m512i acc, __m512i a, __m512i b) {
  const __m512i low = _mm512_set1_epi16(0xff);
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(a, low),
                                         _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8)),
                odd = _mm512_madd_epi16(_mm512_srli_epi16(a, 8), _mm512_srai_epi16(b, 8));
  return _mm512_add_epi32(acc, _mm512_add_epi32(even, odd));
}

#include "backends/cpu/kernels/gemm_int8/int8_operand.inc"
#include "backends/cpu/kernels/gemm_int8/int8_store.inc"
#include "backends/cpu/kernels/gemm_int8/int8_sums512.inc"
#include "backends/cpu/kernels/gemm_int8/int8_tile512.inc"

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 32,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 1.4,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_avx512 = {"gemm_int8_avx512", "gemm_int8", "u8s8", HN_ISA_AVX512,
                                                     &ops};
