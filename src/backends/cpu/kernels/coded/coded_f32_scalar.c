/* Weights that stay codes in memory, scalar tier. */
#define HN_VEC_SCALAR
#include "backends/cpu/kernels/coded/coded_body.h"

const struct hn_kernel hn_kernel_coded_f32_scalar = {
    .name = "coded_f32_scalar", .family = "coded", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
