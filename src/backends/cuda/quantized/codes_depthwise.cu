/* Depthwise convolution of codes, channels-last: a thread makes four channels of HN_TW pixels of a row. Words of four
 * channels of four columns are turned into words of four columns of a channel, which are multiplied at once; with kernels
 * of up to three columns and stride 1 the same words are those of two pixels.
 * Prefix: HN_T (u8, i8): of x; HN_CODE: of y; HN_KH, HN_KW, HN_SH, HN_SW, HN_DH, HN_DW; HN_TW: 1, or 2 where HN_KW is at
 * most 3, HN_SW and HN_DW are 1. */
#include "codes.cuh"
#include "codes_depthwise_args.h"
#include "divide.cuh"

#define hn_dot4 HN_PASTE(hn_dot4_, HN_T)

enum {
  COLUMNS = HN_KW + HN_TW - 1, /* that a row of the kernel reads */
  FOURS = (COLUMNS + 3) / 4
};

/* x[t]: four channels of column t; to: four columns of a channel each. */
HN_FN void turn(const u32 x[4], u32 to[4]) {
  u32 a = hn_bytes(x[0], x[1], 0x5140), b = hn_bytes(x[2], x[3], 0x5140), c = hn_bytes(x[0], x[1], 0x7362),
      d = hn_bytes(x[2], x[3], 0x7362);
  to[0] = hn_bytes(a, b, 0x5410), to[1] = hn_bytes(a, b, 0x7632), to[2] = hn_bytes(c, d, 0x5410), to[3] = hn_bytes(c, d, 0x7632);
}

HN_KERNEL_BOUNDS(codes_depthwise, hn_codes_depthwise_args, a, 128, 6) {
  const u32 i = blockIdx.x * 128 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.work) return;
  u32 rest = hn_quotient(i, &a.fours), next = hn_quotient(rest, &a.groups);
  const u32 four = i - rest * a.fours.by;
  const i32 ox = (i32)(rest - next * a.groups.by) * HN_TW;
  rest = next, next = hn_quotient(rest, &a.rows);
  const i32 oy = (i32)(rest - next * a.rows.by), c = (i32)four * 4, left = a.channels - c;
  const u8 *x = (const u8 *)a.x + next * a.x_image + c;
  i32 sum[HN_TW][4];
  {
    const hn_u4 b = hn_ld16((const i32 *)a.codes.bias + c);
    HN_UNROLL for (int p = 0; p < HN_TW; p++) HN_UNROLL for (int k = 0; k < 4; k++) sum[p][k] = (i32)b.v[k];
  }
  const i32 y0 = oy * HN_SH - a.pad_y, x0 = ox * HN_SW - a.pad_x;
  HN_GRID_WAIT();
  HN_UNROLL for (int r = 0; r < HN_KH; r++) {
    const i32 y = y0 + r * HN_DH;
    const bool row_in = (u32)y < (u32)a.in_y;
    HN_UNROLL for (int g = 0; g < FOURS; g++) {
      const hn_u4 w = hn_ld16((const hn_u4 *)a.weights + (u32)(r * FOURS + g) * a.fours.by + four);
      u32 column[4], tap[4];
      HN_UNROLL for (int t = 0; t < 4; t++) {
        const i32 at = x0 + (g * 4 + t) * HN_DW;
        column[t] = 0;
        if (g * 4 + t < COLUMNS)
          column[t] = row_in && (u32)at < (u32)a.in_x ? *(const u32 *)(const void *)(x + y * a.x_row + at * a.x_pixel) : a.outside;
      }
      turn(column, tap);
      HN_UNROLL for (int k = 0; k < 4; k++) {
        sum[0][k] = hn_dot4(tap[k], w.v[k], sum[0][k]);
#if HN_TW == 2
        sum[1][k] = hn_dot4(tap[k], w.v[k] << 8, sum[1][k]);
#endif
      }
    }
  }
  const hn_u4 s = hn_ld16((const float *)a.codes.scale + c);
  const u32 small = hn_codes_small(&a.codes);
  float scale[4];
  HN_UNROLL for (int k = 0; k < 4; k++) scale[k] = hn_from_bits(s.v[k]);
  u8 *to = (u8 *)a.y + next * a.y_image + oy * a.y_row + ox * a.y_pixel + c;
  HN_UNROLL for (int p = 0; p < HN_TW; p++) {
    if (ox + p >= a.out_x) break;
    u32 v = hn_requantise4(sum[p], scale, 0, small, &a.codes);
    *(u32 *)(void *)(to + p * a.y_pixel) = left >= 4 ? v : left <= 0 ? 0 : v & 0xffffffffu >> (32 - 8 * left);
  }
}
