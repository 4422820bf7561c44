#include "backends/cpu/kernels/depthwise/depthwise.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

#define PIXELS 8
#include "backends/cpu/kernels/depthwise/depthwise_row.inc"

static const hn_depthwise_ops ops = {VEC_W, row};
const struct hn_kernel hn_kernel_depthwise_f32_avx2 = {"depthwise_f32_avx2", "depthwise", "f32", HN_ISA_AVX2,
                                                       &ops};
