#include "backends/cpu/kernels/strassen/strassen.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* Tiles of gemm_f32_avx512_14x32: a sum of two panels adds two loads to a step, and no register. */
#define MR 14
#define NV 2
#define PREFETCH_AHEAD 12
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "backends/cpu/kernels/strassen/strassen_body.inc"

const struct hn_kernel hn_kernel_strassen_f32_avx512_14x32 = {"strassen_f32_avx512_14x32", "strassen", "f32",
                                                              HN_ISA_AVX512, &table};
