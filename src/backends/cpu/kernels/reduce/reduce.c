#include "backends/cpu/kernels/reduce/reduce.h"

const struct hn_reduce_ops *hn_reduce_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("reduce", "f32", isa);
  return k ? k->ops : NULL;
}
