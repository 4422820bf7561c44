#include "backends/cpu/kernels/kernel.h"

#include <string.h>

#define KERNEL(family, stem, isa) extern const struct hn_kernel hn_kernel_##stem;
#include "backends/cpu/kernels.def"
#undef KERNEL

const struct hn_kernel *const hn_kernels[] = {
#define KERNEL(family, stem, isa) &hn_kernel_##stem,
#include "backends/cpu/kernels.def"
#undef KERNEL
    NULL};

const struct hn_kernel *hn_kernel_find(const char *family, const char *role, hn_isa isa) {
  const struct hn_kernel *best = NULL;
  for (const struct hn_kernel *const *p = hn_kernels; *p; p++) {
    const struct hn_kernel *k = *p;
    if (k->isa > isa || strcmp(k->family, family) || strcmp(k->role, role)) continue;
    if (!best || k->isa > best->isa) best = k;
  }
  return best;
}
