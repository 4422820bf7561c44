/* Places of indices, one at a time. */
#include "backends/cpu/kernels/lookup/lookup.h"
#include "base/fault.h"

#define PLACES(INDEX)                                                                                        \
  static bool places_##INDEX(uint32_t *place, const INDEX##_t *index, size_t n, uint32_t dim) {              \
    bool outside = false;                                                                                    \
    if (n && HN_FAULT("lookup_tail")) n--;                                                                   \
    for (size_t i = 0; i < n; i++) {                                                                         \
      const int64_t v = index[i], k = v < 0 ? v + dim : v;                                                   \
      const bool inside = (uint64_t)k < dim;                                                                 \
      outside |= !inside;                                                                                    \
      place[i] = inside ? (uint32_t)k : 0;                                                                   \
    }                                                                                                        \
    return outside;                                                                                          \
  }
PLACES(int64)
PLACES(int32)

static const struct hn_lookup_ops table = {.places_i64 = places_int64, .places_i32 = places_int32};
const struct hn_kernel hn_kernel_lookup_scalar = {
    .name = "lookup_scalar", .family = "lookup", .role = "words", .isa = HN_ISA_SCALAR, .ops = &table};
