/* Normalisation rows and columns once more, as the compiler makes them without vectors. */
#include "backends/cpu/kernels/norm/norm_body.h"

const struct hn_kernel hn_kernel_norm_f32_again = {
    .name = "norm_f32_again", .family = "norm", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
