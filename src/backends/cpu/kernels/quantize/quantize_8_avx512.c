/* Quantisation to and from 8 bits, avx512 tier. */
#include "backends/cpu/kernels/quantize/quantize_body.h"

const struct hn_kernel hn_kernel_quantize_8_avx512 = {
    .name = "quantize_8_avx512", .family = "quantize", .role = "f32_8", .isa = HN_ISA_AVX512, .ops = &table};
