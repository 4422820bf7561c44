/* Inverses, avx2 tier. */
#include "backends/cpu/kernels/invert/invert_body.h"

const struct hn_kernel hn_kernel_invert_f64_avx2 = {
    .name = "invert_f64_avx2", .family = "invert", .role = "f64", .isa = HN_ISA_AVX2, .ops = &table};
