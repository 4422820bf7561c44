/* Sums over places, avx512 tier. */
#include "backends/cpu/kernels/taps/taps_body.h"

const struct hn_kernel hn_kernel_taps_f32_avx512 = {
    .name = "taps_f32_avx512", .family = "taps", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
