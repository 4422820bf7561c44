/* Fourier transforms, avx2 tier. */
#include "backends/cpu/kernels/fourier/fourier_body.h"

const struct hn_kernel hn_kernel_fourier_f32_avx2 = {
    .name = "fourier_f32_avx2", .family = "fourier", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
