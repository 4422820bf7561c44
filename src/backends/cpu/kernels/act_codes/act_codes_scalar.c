/* Activations to codes, scalar tier. */
#include "backends/cpu/kernels/act_codes/act_codes_body.h"

const struct hn_kernel hn_kernel_act_codes_scalar = {
    .name = "act_codes_scalar", .family = "act_codes", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
