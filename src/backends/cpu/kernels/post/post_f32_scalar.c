/* The rest of epilogues, scalar tier. */
#include "backends/cpu/kernels/post/post_body.h"

const struct hn_kernel hn_kernel_post_f32_scalar = {
    .name = "post_f32_scalar", .family = "post", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
