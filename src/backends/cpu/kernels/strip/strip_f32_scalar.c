#include "backends/cpu/kernels/strip/strip.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_half.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 8 sums: fits the 16 registers of the baseline instruction set. */
#define ROWS_TWO 4
#define ROWS_ONE 4
#define B_AHEAD 32
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#include "backends/cpu/kernels/strip/strip_body.h"

static const hn_strip_ops ops = {ROWS_TWO, 2 * VEC_W, VEC_W, run};
const struct hn_kernel hn_kernel_strip_f32_scalar = {"strip_f32_scalar", "strip", "f32", HN_ISA_SCALAR, &ops};
