/* Products of wide numbers, scalar tier. */
#define BYTES 16
#define ROWS 4
#define VECTORS 2
#include "backends/cpu/kernels/wide/wide_body.h"

const struct hn_kernel hn_kernel_wide_scalar = {
    .name = "wide_scalar", .family = "wide", .role = "products", .isa = HN_ISA_SCALAR, .ops = &table};
