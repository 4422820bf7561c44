/* Scores to weights, avx2 tier. */
#include "backends/cpu/kernels/attention/attention_body.h"

const struct hn_kernel hn_kernel_attention_f32_avx2 = {
    .name = "attention_f32_avx2", .family = "attention", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
