#include "backends/cpu/kernels/softmax/softmax.h"

const struct hn_softmax_ops *hn_softmax_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("softmax", "f32", isa);
  return k ? k->ops : NULL;
}
