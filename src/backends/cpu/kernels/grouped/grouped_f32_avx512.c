#include "backends/cpu/kernels/grouped/grouped.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define PIXELS 14
#define EACH_OF_THREE(X) X(14) X(10) X(8) X(7) X(4) X(2) X(1)
#define EACH_OF_TWO(X) X(14) X(10) X(8) X(7) X(4) X(2) X(1)
#define EACH(X) X(12) X(7) X(4) X(1)
#include "backends/cpu/kernels/grouped/grouped_body.h"

static const hn_grouped_ops ops = {VEC_W, row, spread};
const struct hn_kernel hn_kernel_grouped_f32_avx512 = {"grouped_f32_avx512", "grouped", "f32", HN_ISA_AVX512,
                                                       &ops};
