#include "backends/cpu/kernels/resize/resize.h"

const struct hn_resize_ops *hn_resize_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("resize", "f32", isa);
  return k ? k->ops : NULL;
}
