/* Transposes, scalar tier. */
#include "backends/cpu/kernels/transpose/transpose_body.h"

const struct hn_kernel hn_kernel_transpose_scalar = {
    .name = "transpose_scalar", .family = "transpose", .role = "bits", .isa = HN_ISA_SCALAR, .ops = &table};
