/* Normalisation rows and columns, scalar tier. */
#include "backends/cpu/kernels/norm/norm_body.h"

const struct hn_kernel hn_kernel_norm_f32_scalar = {
    .name = "norm_f32_scalar", .family = "norm", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
