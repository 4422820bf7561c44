/* Quantisation to and from 8 bits, scalar tier. */
#include "backends/cpu/kernels/quantize/quantize_body.h"

const struct hn_kernel hn_kernel_quantize_8_scalar = {
    .name = "quantize_8_scalar", .family = "quantize", .role = "f32_8", .isa = HN_ISA_SCALAR, .ops = &table};
