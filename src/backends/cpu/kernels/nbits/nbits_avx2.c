/* Columns of codes of few bits, avx2 tier. */
#include "backends/cpu/kernels/nbits/nbits_body.h"

const struct hn_kernel hn_kernel_nbits_avx2 = {
    .name = "nbits_avx2", .family = "nbits", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
