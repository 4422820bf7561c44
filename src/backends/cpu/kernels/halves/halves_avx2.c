/* f32 from and to 16-bit floats, avx2 tier. */
#include "backends/cpu/kernels/halves/halves_body.h"

const struct hn_kernel hn_kernel_halves_avx2 = {
    .name = "halves_avx2", .family = "halves", .role = "f32_16", .isa = HN_ISA_AVX2, .ops = &table};
