#include "backends/cpu/quantized/code_rows.h"

#include <string.h>

#include "base/fault.h"

size_t hn_code_rows_bytes(int64_t rows, int64_t n) { return ((size_t)(rows * n) * 5 + 63) / 64 * 64; }

void hn_code_rows_put(const hn_code_rows *c, float *block, int64_t rows, int64_t n, int64_t c0, uint8_t *y,
                      int64_t pitch) {
  const size_t all = (size_t)(rows * n);
  if (c->vectors) {
    const float *scale = c->scale + c0, *zero = c->zero + c0;
    for (int64_t r = 0; r < rows; r++)
      c->ops->quantize(y + r * pitch, block + r * n, (size_t)n, scale, zero, true, c->is_signed);
    return;
  }
  if (pitch == n) {
    c->ops->quantize(y, block, all, c->scale, c->zero, false, c->is_signed);
    return;
  }
  uint8_t *codes = (uint8_t *)(block + all);
  c->ops->quantize(codes, block, all, c->scale, c->zero, false, c->is_signed);
  for (int64_t r = 0; r < rows; r++)
    memcpy(y + r * pitch, codes + r * n, (size_t)(HN_FAULT("code_rows_tail") && n > 1 ? n - 1 : n));
}
