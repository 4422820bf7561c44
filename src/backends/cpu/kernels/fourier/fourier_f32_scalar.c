/* Fourier transforms, scalar tier. */
#include "backends/cpu/kernels/fourier/fourier_body.h"

const struct hn_kernel hn_kernel_fourier_f32_scalar = {
    .name = "fourier_f32_scalar", .family = "fourier", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
