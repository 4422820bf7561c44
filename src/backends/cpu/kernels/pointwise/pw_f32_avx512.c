/* Elementwise functions, avx512 tier. */
#include "backends/cpu/kernels/pointwise/pw_body.h"

const struct hn_kernel hn_kernel_pw_f32_avx512 = {
    .name = "pw_f32_avx512", .family = "pointwise", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
