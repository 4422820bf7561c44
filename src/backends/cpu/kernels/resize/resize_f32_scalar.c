/* Interpolation, scalar tier. */
#include "backends/cpu/kernels/resize/resize_body.h"

const struct hn_kernel hn_kernel_resize_f32_scalar = {
    .name = "resize_f32_scalar", .family = "resize", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
