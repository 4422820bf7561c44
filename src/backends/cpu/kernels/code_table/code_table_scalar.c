/* Tables of codes, scalar tier. */
#include "backends/cpu/kernels/code_table/code_table.h"

#include "base/fault.h"

static void look_up(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table) {
  const unsigned mask = HN_FAULT("code_table_high") ? 127 : 255;
  for (size_t i = 0; i < n; i++) dst[i] = table[src[i] & mask];
}

static void rows(uint8_t *y, ptrdiff_t pitch, size_t count, size_t n, const uint8_t *table) {
  for (; count; count--, y += pitch) look_up(y, y, n, table);
}

static const hn_code_table_ops ops = {look_up, rows};
const struct hn_kernel hn_kernel_code_table_scalar = {
    .name = "code_table_scalar", .family = "code_table", .role = "u8", .isa = HN_ISA_SCALAR, .ops = &ops};
