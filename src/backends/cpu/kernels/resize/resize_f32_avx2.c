/* Interpolation, avx2 tier. */
#include "backends/cpu/kernels/resize/resize_body.h"

const struct hn_kernel hn_kernel_resize_f32_avx2 = {
    .name = "resize_f32_avx2", .family = "resize", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
