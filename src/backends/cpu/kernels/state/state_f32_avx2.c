/* States that go from token to token, avx2 tier. */
#include "backends/cpu/kernels/state/state_body.h"

const struct hn_kernel hn_kernel_state_f32_avx2 = {
    .name = "state_f32_avx2", .family = "state", .role = "f32", .isa = HN_ISA_AVX2, .ops = &table};
