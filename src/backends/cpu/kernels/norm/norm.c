#include "backends/cpu/kernels/norm/norm.h"

const struct hn_norm_ops *hn_norm_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("norm", "f32", isa);
  return k ? k->ops : NULL;
}
