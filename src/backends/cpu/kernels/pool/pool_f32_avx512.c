/* Pooling rows, avx512 tier. */
#include "backends/cpu/kernels/pool/pool_body.h"

const struct hn_kernel hn_kernel_pool_f32_avx512 = {
    .name = "pool_f32_avx512", .family = "pool", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
