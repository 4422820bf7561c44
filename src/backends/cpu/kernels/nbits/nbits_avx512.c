/* Columns of codes of few bits, avx512 tier. */
#include "backends/cpu/kernels/nbits/nbits_body.h"

const struct hn_kernel hn_kernel_nbits_avx512 = {
    .name = "nbits_avx512", .family = "nbits", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
