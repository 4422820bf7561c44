/* Reductions of rows and columns, scalar tier. */
#include "backends/cpu/kernels/reduce/reduce_body.h"

const struct hn_kernel hn_kernel_reduce_f32_scalar = {
    .name = "reduce_f32_scalar", .family = "reduce", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
