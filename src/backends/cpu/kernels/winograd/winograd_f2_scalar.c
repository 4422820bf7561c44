#include "backends/cpu/kernels/winograd/winograd.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define WINO_M 2
#define WINO_STRIDE 1
#include "backends/cpu/kernels/winograd/winograd_body.h"

const struct hn_kernel hn_kernel_winograd_f2_scalar = {"winograd_f2_scalar", "winograd", "f2", HN_ISA_SCALAR,
                                                       &ops};
