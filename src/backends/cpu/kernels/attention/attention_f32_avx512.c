/* Scores to weights, avx512 tier. */
#include "backends/cpu/kernels/attention/attention_body.h"

const struct hn_kernel hn_kernel_attention_f32_avx512 = {.name = "attention_f32_avx512",
                                                         .family = "attention",
                                                         .role = "f32",
                                                         .isa = HN_ISA_AVX512,
                                                         .ops = &table};
