/* Activations to codes, avx512 tier. */
#include "backends/cpu/kernels/act_codes/act_codes_body.h"

const struct hn_kernel hn_kernel_act_codes_avx512 = {
    .name = "act_codes_avx512", .family = "act_codes", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
