/* Elementwise functions, avx2 tier. */
#include "backends/cpu/kernels/pointwise/pw_body.h"

const struct hn_kernel hn_kernel_pw_f32_avx2 = {
    .name = "pw_f32_avx2", .family = "pointwise", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
