/* The rest of epilogues, avx2 tier. */
#include "backends/cpu/kernels/post/post_body.h"

const struct hn_kernel hn_kernel_post_f32_avx2 = {
    .name = "post_f32_avx2", .family = "post", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
