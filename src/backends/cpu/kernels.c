#include "backends/cpu/kernels/kernel.h"

#include "base/fault.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

#define KERNEL(family, stem, isa) extern const struct hn_kernel hn_kernel_##stem;
#include "backends/cpu/kernels.def"
#undef KERNEL

const struct hn_kernel *const hn_kernels[] = {
#define KERNEL(family, stem, isa) &hn_kernel_##stem,
#include "backends/cpu/kernels.def"
#undef KERNEL
    NULL};

static bool runs_on(const struct hn_kernel *k, hn_isa isa) {
  return HN_FAULT("kernel_of_a_branch") ? k->isa <= isa : hn_isa_has(isa, k->isa);
}

static const struct hn_kernel *search(const char *family, const char *role, hn_isa isa) {
  const struct hn_kernel *best = NULL;
  for (const struct hn_kernel *const *p = hn_kernels; *p; p++) {
    const struct hn_kernel *k = *p;
    if (!runs_on(k, isa) || !hn_same_name(k->family, family) || !hn_same_name(k->role, role)) continue;
    if (!best || k->isa > best->isa) best = k;
  }
  return best;
}

/* Steps ask in every run, some of them twice, and a search takes 0.3 us. Names are literals: where one lies
 * says where its answer was left. */
const struct hn_kernel *hn_kernel_find(const char *family, const char *role, hn_isa isa) {
  enum { PLACES = 64 };
  static _Thread_local struct {
    const struct hn_kernel *kernel;
    const char *family, *role; /* asked for */
    hn_isa isa;
  } found[PLACES];
  const size_t at = ((uintptr_t)family / 8 + (uintptr_t)role * 5 + (size_t)isa) % PLACES;
  const struct hn_kernel *k = found[at].kernel;
  if (k && found[at].isa == isa && found[at].family == family && found[at].role == role) return k;
  k = search(family, role, isa);
  found[at].kernel = k, found[at].family = family, found[at].role = role, found[at].isa = isa;
  return k;
}
