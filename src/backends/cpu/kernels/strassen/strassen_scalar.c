/* Sums of quarters of matrices, scalar tier. */
#include "backends/cpu/kernels/strassen/strassen_body.h"

const struct hn_kernel hn_kernel_strassen_scalar = {
    .name = "strassen_scalar", .family = "strassen", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
