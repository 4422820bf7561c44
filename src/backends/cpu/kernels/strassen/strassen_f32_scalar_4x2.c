#include "backends/cpu/kernels/strassen/strassen.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_spread.h"

/* Tiles of gemm_f32_scalar_4x2. */
#define MR 4
#define NV 2
#define PREFETCH_AHEAD 32
#define ROWS(X) X(1) X(2) X(3) X(4)
#include "backends/cpu/kernels/strassen/strassen_body.inc"

const struct hn_kernel hn_kernel_strassen_f32_scalar_4x2 = {"strassen_f32_scalar_4x2", "strassen", "f32",
                                                            HN_ISA_SCALAR, &table};
