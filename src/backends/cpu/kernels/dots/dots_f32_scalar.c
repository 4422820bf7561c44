#include "backends/cpu/kernels/dots/dots_body.h"

const struct hn_kernel hn_kernel_dots_f32_scalar = {"dots_f32_scalar", "dots", "f32", HN_ISA_SCALAR, &ops};
