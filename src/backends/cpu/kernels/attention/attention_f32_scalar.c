/* Scores to weights, scalar tier. */
#include "backends/cpu/kernels/attention/attention_body.h"

const struct hn_kernel hn_kernel_attention_f32_scalar = {.name = "attention_f32_scalar",
                                                         .family = "attention",
                                                         .role = "f32",
                                                         .isa = HN_ISA_SCALAR,
                                                         .ops = &table};
