#include "backends/cpu/kernels/winograd/winograd.h"

#include <stdbool.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define WINO_M 3
#define WINO_STRIDE 2
#include "backends/cpu/kernels/winograd/winograd_body.h"

const struct hn_kernel hn_kernel_winograd_f3s2_avx512 = {"winograd_f3s2_avx512", "winograd", "f3s2",
                                                         HN_ISA_AVX512, &ops};
