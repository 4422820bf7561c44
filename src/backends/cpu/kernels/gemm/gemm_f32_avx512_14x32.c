#include "backends/cpu/kernels/gemm/gemm.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 28 accumulators, 2 vectors of B, 1 broadcast of A: 31 of 32 registers; 28 FMA for 16 loads a step. */
#define MR 14
#define NV 2
#define PREFETCH_AHEAD 12
#include "backends/cpu/kernels/gemm/gemm_tile.inc"

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "backends/cpu/kernels/gemm/gemm_table.inc"

static const hn_gemm_ops ops = {MR, NV *VEC_W, VEC_W, tile};
const struct hn_kernel hn_kernel_gemm_f32_avx512_14x32 = {"gemm_f32_avx512_14x32", "gemm", "f32",
                                                          HN_ISA_AVX512, &ops};
