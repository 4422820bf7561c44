/* Sums of quarters of matrices, avx2 tier. */
#include "backends/cpu/kernels/strassen/strassen_body.h"

const struct hn_kernel hn_kernel_strassen_avx2 = {
    .name = "strassen_avx2", .family = "strassen", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
