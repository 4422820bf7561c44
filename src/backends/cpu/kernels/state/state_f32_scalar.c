/* States that go from token to token, scalar tier. */
#include "backends/cpu/kernels/state/state_body.h"

const struct hn_kernel hn_kernel_state_f32_scalar = {
    .name = "state_f32_scalar", .family = "state", .role = "f32", .isa = HN_ISA_SCALAR, .ops = &table};
