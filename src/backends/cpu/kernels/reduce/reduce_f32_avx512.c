/* Reductions of rows and columns, avx512 tier. */
#include "backends/cpu/kernels/reduce/reduce_body.h"

const struct hn_kernel hn_kernel_reduce_f32_avx512 = {
    .name = "reduce_f32_avx512", .family = "reduce", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
