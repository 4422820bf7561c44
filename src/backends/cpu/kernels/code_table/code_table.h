/* Family "code_table": every byte goes to what a table of 256 bytes has in its place. */
#ifndef HN_KERNELS_CODE_TABLE_H
#define HN_KERNELS_CODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_code_table_ops {
  /* dst[i] = table[src[i]], i < n; dst may be src. */
  void (*look_up)(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table);
  /* n bytes of each of some rows, in place, `pitch` bytes from row to row. */
  void (*rows)(uint8_t *y, ptrdiff_t pitch, size_t rows, size_t n, const uint8_t *table);
} hn_code_table_ops;

/* The best kernel at or below a tier. */
static inline const hn_code_table_ops *hn_code_table_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("code_table", "u8", isa);
  return k ? (const hn_code_table_ops *)k->ops : NULL;
}

#endif
