/* Sums of quarters of matrices, avx512 tier. */
#include "backends/cpu/kernels/strassen/strassen_body.h"

const struct hn_kernel hn_kernel_strassen_avx512 = {
    .name = "strassen_avx512", .family = "strassen", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
