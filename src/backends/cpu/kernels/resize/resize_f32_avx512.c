/* Interpolation, avx512 tier. */
#include "backends/cpu/kernels/resize/resize_body.h"

const struct hn_kernel hn_kernel_resize_f32_avx512 = {
    .name = "resize_f32_avx512", .family = "resize", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
