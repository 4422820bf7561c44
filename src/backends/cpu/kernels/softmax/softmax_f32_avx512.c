/* Softmax rows and columns, avx512 tier. */
#include "backends/cpu/kernels/softmax/softmax_body.h"

const struct hn_kernel hn_kernel_softmax_f32_avx512 = {
    .name = "softmax_f32_avx512", .family = "softmax", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
