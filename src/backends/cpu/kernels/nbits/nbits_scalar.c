/* Columns of codes of few bits, scalar tier. */
#define HN_VEC_SCALAR
#include "backends/cpu/kernels/nbits/nbits_body.h"

const struct hn_kernel hn_kernel_nbits_scalar = {
    .name = "nbits_scalar", .family = "nbits", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
