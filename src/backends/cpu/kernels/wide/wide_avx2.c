/* Products of wide numbers, avx2 tier. */
#define BYTES 32
#define ROWS 4
#define VECTORS 2
#include "backends/cpu/kernels/wide/wide_body.h"

const struct hn_kernel hn_kernel_wide_avx2 = {
    .name = "wide_avx2", .family = "wide", .role = "products", .isa = HN_ISA_AVX2, .ops = &table};
