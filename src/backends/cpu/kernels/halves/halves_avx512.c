/* f32 from and to 16-bit floats, avx512 tier. */
#include "backends/cpu/kernels/halves/halves_body.h"

const struct hn_kernel hn_kernel_halves_avx512 = {
    .name = "halves_avx512", .family = "halves", .role = "f32_16", .isa = HN_ISA_AVX512, .ops = &table};
