/* Normalisation rows and columns, avx512 tier. */
#include "backends/cpu/kernels/norm/norm_body.h"

const struct hn_kernel hn_kernel_norm_f32_avx512 = {
    .name = "norm_f32_avx512", .family = "norm", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
