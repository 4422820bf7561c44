/* The definition in C. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/depthwise_int8/depthwise_int8.h"
#include "base/fault.h"

static void pixel(const hn_dw8_row *r, int64_t ox) {
  uint32_t sum[HN_DW8_BLOCK];
  for (int j = 0; j < HN_DW8_BLOCK; j++) sum[j] = (uint32_t)r->bias[j];
  const int8_t *w = r->w;
  for (uint32_t g = 0; g < r->groups; g++)
    for (uint32_t u = 0; u < r->taps; u++, w += HN_DW8_TAP) {
      const int64_t ix = ox * r->stride - r->pad + u * r->dilation;
      for (int j = 0; j < HN_DW8_BLOCK; j++) {
        const int64_t c = hn_dw8_channel(j);
        if (c >= r->channels) continue;
        for (int v = 0; v < HN_DW8_ROWS; v++) {
          int32_t x = HN_FAULT("dw8_padding") ? 0 : r->padding;
          if (ix >= 0 && ix < r->width)
            x = r->x[g * HN_DW8_ROWS + (uint32_t)v][ix * r->x_pixel + c] ^ (r->flip ? 0x80 : 0);
          sum[j] += (uint32_t)(x * w[4 * j + v]);
        }
      }
    }
  const float zero = HN_FAULT("dw8_zero") ? 0 : (float)r->zero, lo = r->is_signed ? -128 : 0,
              hi = r->is_signed ? 127 : 255;
  for (int j = 0; j < HN_DW8_BLOCK; j++) {
    const int64_t c = hn_dw8_channel(j);
    if (r->wide) {
      const float v = r->whole ? 0 : (float)(int32_t)sum[j] * r->scale[j];
      if (c < (HN_FAULT("dw8_wide_tail") ? r->channels - 1 : r->channels))
        memcpy(r->y + ox * r->y_pixel + 4 * c, r->whole ? (const void *)&sum[j] : &v, sizeof v);
      continue;
    }
    if (c >= (HN_FAULT("dw8_tail_mask") ? r->channels - 1 : r->channels)) continue;
    const float v = rintf((float)(int32_t)sum[j] * r->scale[j]) + zero, q = v < lo ? lo : v > hi ? hi : v;
    r->y[ox * r->y_pixel + c] = r->is_signed ? (uint8_t)(int8_t)q : (uint8_t)q;
  }
}

static void row(const hn_dw8_row *r) {
  for (int64_t ox = 0; ox < r->n; ox++) pixel(r, ox);
}

static const hn_dw8_ops ops = {.rate = 0.5, .row = row};
const struct hn_kernel hn_kernel_depthwise_int8_scalar = {"depthwise_int8_scalar", "depthwise_int8", "u8s8",
                                                          HN_ISA_SCALAR, &ops};
