#include "backends/cpu/kernels/strip/strip.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_half.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 12 sums in either form: of fewer, products would wait for each other. */
#define ROWS_TWO 6
#define ROWS_ONE 12
#define B_AHEAD 16
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#include "backends/cpu/kernels/strip/strip_body.h"

static const hn_strip_ops ops = {ROWS_TWO, 2 * VEC_W, VEC_W, run};
const struct hn_kernel hn_kernel_strip_f32_avx2 = {"strip_f32_avx2", "strip", "f32", HN_ISA_AVX2, &ops};
