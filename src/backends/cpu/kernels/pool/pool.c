#include "backends/cpu/kernels/pool/pool.h"

const struct hn_pool_ops *hn_pool_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pool", "f32", isa);
  return k ? k->ops : NULL;
}
