#include "backends/cpu/kernels/strip/strip.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_half.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 28 sums, 2 vectors of B, 1 broadcast of A: 31 of 32 registers. */
#define ROWS_TWO 14
#define ROWS_ONE 14
#define B_AHEAD 12
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "backends/cpu/kernels/strip/strip_body.h"

static const hn_strip_ops ops = {ROWS_TWO, 2 * VEC_W, VEC_W, run};
const struct hn_kernel hn_kernel_strip_f32_avx512 = {"strip_f32_avx512", "strip", "f32", HN_ISA_AVX512, &ops};
