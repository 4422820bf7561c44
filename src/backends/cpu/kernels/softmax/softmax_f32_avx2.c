/* Softmax rows and columns, avx2 tier. */
#include "backends/cpu/kernels/softmax/softmax_body.h"

const struct hn_kernel hn_kernel_softmax_f32_avx2 = {
    .name = "softmax_f32_avx2", .family = "softmax", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
