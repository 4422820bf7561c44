#include "backends/cpu/kernels/grouped/grouped.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec.h"

#define PIXELS 4
#define EACH_OF_THREE(X) X(4) X(1)
#define EACH_OF_TWO(X) X(4) X(1)
#define EACH(X) X(4) X(1)
#include "backends/cpu/kernels/grouped/grouped_body.h"

static const hn_grouped_ops ops = {VEC_W, row, spread};
const struct hn_kernel hn_kernel_grouped_f32_scalar = {"grouped_f32_scalar", "grouped", "f32", HN_ISA_SCALAR,
                                                       &ops};
