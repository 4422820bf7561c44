/* Softmax rows and columns, scalar tier. */
#include "backends/cpu/kernels/softmax/softmax_body.h"

const struct hn_kernel hn_kernel_softmax_f32_scalar = {
    .name = "softmax_f32_scalar", .family = "softmax", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
