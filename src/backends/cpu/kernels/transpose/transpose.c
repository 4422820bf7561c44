#include "backends/cpu/kernels/transpose/transpose.h"

const struct hn_transpose_ops *hn_transpose_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("transpose", "bits", isa);
  return k ? k->ops : NULL;
}
