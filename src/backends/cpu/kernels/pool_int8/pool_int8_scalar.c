/* Maxima of codes, scalar tier. */
#include <stddef.h>
#include <stdint.h>

enum { BYTES = 1 };
typedef uint8_t bytes;
static inline bytes load(const void *p) { return *(const uint8_t *)p; }
static inline void store(void *p, bytes v) { *(uint8_t *)p = v; }
static inline bytes load_some(const void *p, size_t n) { return n ? load(p) : 0; }
static inline void store_some(void *p, bytes v, size_t n) {
  if (n) store(p, v);
}
static inline bytes max_u8(bytes a, bytes b) { return a > b ? a : b; }
static inline bytes max_i8(bytes a, bytes b) { return (int8_t)a > (int8_t)b ? a : b; }

#include "backends/cpu/kernels/pool_int8/pool_int8_body.h"

const struct hn_kernel hn_kernel_pool_int8_scalar = {
    .name = "pool_int8_scalar", .family = "pool_int8", .role = "max", .isa = HN_ISA_SCALAR, .ops = &table};
