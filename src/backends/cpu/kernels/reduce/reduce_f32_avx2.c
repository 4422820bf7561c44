/* Reductions of rows and columns, avx2 tier. */
#include "backends/cpu/kernels/reduce/reduce_body.h"

const struct hn_kernel hn_kernel_reduce_f32_avx2 = {
    .name = "reduce_f32_avx2", .family = "reduce", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
