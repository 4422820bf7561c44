/* Products of wide numbers, avx512 tier. */
#define BYTES 64
#define ROWS 8
#define VECTORS 3
#include "backends/cpu/kernels/wide/wide_body.h"

const struct hn_kernel hn_kernel_wide_avx512 = {
    .name = "wide_avx512", .family = "wide", .role = "products", .isa = HN_ISA_AVX512, .ops = &table};
