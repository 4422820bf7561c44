/* f32 from and to 16-bit floats, scalar tier. */
#include "backends/cpu/kernels/halves/halves_body.h"

const struct hn_kernel hn_kernel_halves_scalar = {
    .name = "halves_scalar", .family = "halves", .role = "f32_16", .isa = HN_ISA_SCALAR, .ops = &table};
