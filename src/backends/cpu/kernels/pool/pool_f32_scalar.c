/* Pooling rows, scalar tier. */
#include "backends/cpu/kernels/pool/pool_body.h"

const struct hn_kernel hn_kernel_pool_f32_scalar = {
    .name = "pool_f32_scalar", .family = "pool", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
