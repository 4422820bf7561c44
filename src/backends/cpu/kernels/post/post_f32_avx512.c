/* The rest of epilogues, avx512 tier. */
#include "backends/cpu/kernels/post/post_body.h"

const struct hn_kernel hn_kernel_post_f32_avx512 = {
    .name = "post_f32_avx512", .family = "post", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
