#include "backends/cpu/kernels/gemm/gemm.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 12 accumulators, 2 vectors of B, 1 broadcast of A: 15 of 16 registers. */
#define MR 6
#define NV 2
#define PREFETCH_AHEAD 16
#include "backends/cpu/kernels/gemm/gemm_tile.inc"

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "backends/cpu/kernels/gemm/gemm_table.inc"

static const hn_gemm_ops ops = {MR, NV *VEC_W, VEC_W, tile};
const struct hn_kernel hn_kernel_gemm_f32_avx2_6x16 = {"gemm_f32_avx2_6x16", "gemm", "f32", HN_ISA_AVX2,
                                                       &ops};
