/* Sums over places, avx2 tier. */
#include "backends/cpu/kernels/taps/taps_body.h"

const struct hn_kernel hn_kernel_taps_f32_avx2 = {
    .name = "taps_f32_avx2", .family = "taps", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
