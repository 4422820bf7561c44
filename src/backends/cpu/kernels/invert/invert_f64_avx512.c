/* Inverses, avx512 tier. */
#include "backends/cpu/kernels/invert/invert_body.h"

const struct hn_kernel hn_kernel_invert_f64_avx512 = {
    .name = "invert_f64_avx512", .family = "invert", .role = "f64", .isa = HN_ISA_AVX512, .ops = &table};
