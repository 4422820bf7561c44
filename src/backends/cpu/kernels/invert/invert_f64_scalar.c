/* Inverses, scalar tier. */
#include "backends/cpu/kernels/invert/invert_body.h"

const struct hn_kernel hn_kernel_invert_f64_scalar = {
    .name = "invert_f64_scalar", .family = "invert", .role = "f64", .isa = HN_ISA_SCALAR, .ops = &table};
