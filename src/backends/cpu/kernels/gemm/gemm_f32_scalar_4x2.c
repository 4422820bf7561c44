#include "backends/cpu/kernels/gemm/gemm.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* 8 accumulators: fits the 16 registers of the baseline instruction set. */
#define MR 4
#define NV 2
#define PREFETCH_AHEAD 32
#include "backends/cpu/kernels/gemm/gemm_tile.inc"

#define ROWS(X) X(1) X(2) X(3) X(4)
#include "backends/cpu/kernels/gemm/gemm_table.inc"

static const hn_gemm_ops ops = {MR, NV *VEC_W, VEC_W, tile};
const struct hn_kernel hn_kernel_gemm_f32_scalar_4x2 = {"gemm_f32_scalar_4x2", "gemm", "f32", HN_ISA_SCALAR,
                                                        &ops};
