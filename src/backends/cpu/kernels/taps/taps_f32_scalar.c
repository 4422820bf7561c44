/* Sums over places, scalar tier. */
#define HN_VEC_SCALAR
#include "backends/cpu/kernels/taps/taps_body.h"

const struct hn_kernel hn_kernel_taps_f32_scalar = {
    .name = "taps_f32_scalar", .family = "taps", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
