/* Elementwise functions, scalar tier. */
#include "backends/cpu/kernels/pointwise/pw_body.h"

const struct hn_kernel hn_kernel_pw_f32_scalar = {
    .name = "pw_f32_scalar", .family = "pointwise", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
