#include "backends/cpu/kernels/dots/dots_body.h"

const struct hn_kernel hn_kernel_dots_f32_avx2 = {"dots_f32_avx2", "dots", "f32", HN_ISA_AVX2, &ops};
