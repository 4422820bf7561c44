#include "backends/cpu/kernels/dots/dots_body.h"

const struct hn_kernel hn_kernel_dots_f32_avx512 = {"dots_f32_avx512", "dots", "f32", HN_ISA_AVX512, &ops};
