/* Weights that stay codes in memory, avx512 tier. */
#include "backends/cpu/kernels/coded/coded_body.h"

const struct hn_kernel hn_kernel_coded_f32_avx512 = {
    .name = "coded_f32_avx512", .family = "coded", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
