/* Normalisation rows and columns, avx2 tier. */
#include "backends/cpu/kernels/norm/norm_body.h"

const struct hn_kernel hn_kernel_norm_f32_avx2 = {
    .name = "norm_f32_avx2", .family = "norm", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
