/* States that go from token to token, avx512 tier. */
#include "backends/cpu/kernels/state/state_body.h"

const struct hn_kernel hn_kernel_state_f32_avx512 = {
    .name = "state_f32_avx512", .family = "state", .role = "f32", .isa = HN_ISA_AVX512, .ops = &table};
