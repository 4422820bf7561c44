/* Pooling rows, avx2 tier. */
#include "backends/cpu/kernels/pool/pool_body.h"

const struct hn_kernel hn_kernel_pool_f32_avx2 = {
    .name = "pool_f32_avx2", .family = "pool", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
