/* Depthwise convolution of codes, channels-last: a thread makes four channels of HN_TW pixels of HN_TH rows. Words of four
 * channels of four columns are turned into words of four columns of a channel, which are multiplied at once, for every row
 * of results that the row of x counts for; with kernels of up to three columns and stride 1 the same words are those of two
 * pixels.
 * Prefix: HN_T (u8, i8): of x; HN_CODE: of y; HN_KH, HN_KW, HN_SH, HN_SW, HN_DH, HN_DW; HN_TW: 1, or 2 where HN_KW is at
 * most 3, HN_SW and HN_DW are 1; HN_TH: 1, or more where HN_DH is 1. */
#include "codes.cuh"
#include "codes_depthwise_args.h"
#include "divide.cuh"

#define hn_dot4 HN_PASTE(hn_dot4_, HN_T)

enum {
  COLUMNS = HN_KW + HN_TW - 1, /* that a row of the kernel reads */
  FOURS = (COLUMNS + 3) / 4,
  ROWS = (HN_TH - 1) * HN_SH + HN_KH /* of x that are read */
};

/* x[t]: four channels of column t; to: four columns of a channel each. */
HN_FN void turn(const u32 x[4], u32 to[4]) {
  u32 a = hn_bytes(x[0], x[1], 0x5140), b = hn_bytes(x[2], x[3], 0x5140), c = hn_bytes(x[0], x[1], 0x7362),
      d = hn_bytes(x[2], x[3], 0x7362);
  to[0] = hn_bytes(a, b, 0x5410), to[1] = hn_bytes(a, b, 0x7632), to[2] = hn_bytes(c, d, 0x5410), to[3] = hn_bytes(c, d, 0x7632);
}

/* Four taps of four channels in each of a row's words; [1]: as the pixel on the right sees them. */
typedef struct taps {
  u32 w[HN_KH][FOURS][HN_TW][4];
} taps;
HN_FN void load_taps(const hn_codes_depthwise_args *a, u32 four, taps *t) {
  HN_UNROLL for (int r = 0; r < HN_KH; r++) HN_UNROLL for (int g = 0; g < FOURS; g++) {
    const hn_u4 w = hn_ld16((const hn_u4 *)a->weights + (u32)(r * FOURS + g) * a->fours.by + four);
    HN_UNROLL for (int p = 0; p < HN_TW; p++) HN_UNROLL for (int k = 0; k < 4; k++) t->w[r][g][p][k] = w.v[k] << (8 * p);
  }
}

HN_KERNEL_BOUNDS(codes_depthwise, hn_codes_depthwise_args, a, 128, HN_TH > 2 ? 5 : 6) {
  const u32 i = blockIdx.x * 128 + threadIdx.x;
  HN_GRID_GO();
  if (i >= a.work) return;
  u32 rest = hn_quotient(i, &a.fours), next = hn_quotient(rest, &a.groups);
  const u32 four = i - rest * a.fours.by;
  const i32 ox = (i32)(rest - next * a.groups.by) * HN_TW;
  rest = next, next = hn_quotient(rest, &a.rows);
  const i32 oy = (i32)(rest - next * a.rows.by) * HN_TH, c = (i32)four * 4, left = a.channels - c;
  i32 sum[HN_TH][HN_TW][4];
  {
    const hn_u4 b = hn_ld16((const i32 *)a.codes.bias + c);
    HN_UNROLL for (int o = 0; o < HN_TH; o++) HN_UNROLL for (int p = 0; p < HN_TW; p++)
      HN_UNROLL for (int k = 0; k < 4; k++) sum[o][p][k] = (i32)b.v[k];
  }
  taps taps_of;
#if HN_KH * ((HN_KW + HN_TW + 2) / 4) <= 3
  load_taps(&a, four, &taps_of);
#endif
  const i32 y0 = oy * HN_SH - a.pad_y, x0 = ox * HN_SW - a.pad_x;
  const u8 *x = (const u8 *)a.x + next * a.x_image + c + x0 * a.x_pixel;
  bool there[FOURS * 4];
  HN_UNROLL for (int t = 0; t < FOURS * 4; t++) there[t] = t < COLUMNS && (u32)(x0 + t * HN_DW) < (u32)a.in_x;
  HN_GRID_WAIT();
  HN_UNROLL for (int r = 0; r < ROWS; r++) {
    const i32 y = y0 + r * (HN_TH == 1 ? HN_DH : 1);
    const bool row_in = (u32)y < (u32)a.in_y;
    const u8 *row = x + y * a.x_row;
    HN_UNROLL for (int g = 0; g < FOURS; g++) {
      u32 column[4], tap[4];
      HN_UNROLL for (int t = 0; t < 4; t++) {
        column[t] = a.outside;
        if (row_in && there[g * 4 + t]) column[t] = *(const u32 *)(const void *)(row + (g * 4 + t) * HN_DW * a.x_pixel);
      }
      turn(column, tap);
      HN_UNROLL for (int o = 0; o < HN_TH; o++) {
        const int k_row = r - o * HN_SH;
        if (k_row < 0 || k_row >= HN_KH) continue;
#if HN_KH * ((HN_KW + HN_TW + 2) / 4) > 3
        const hn_u4 w = hn_ld16((const hn_u4 *)a.weights + (u32)(k_row * FOURS + g) * a.fours.by + four);
#define HN_TAP(p, k) (w.v[k] << (8 * (p)))
#else
#define HN_TAP(p, k) taps_of.w[k_row][g][p][k]
#endif
        HN_UNROLL for (int p = 0; p < HN_TW; p++)
          HN_UNROLL for (int k = 0; k < 4; k++) sum[o][p][k] = hn_dot4(tap[k], HN_TAP(p, k), sum[o][p][k]);
      }
    }
  }
  const hn_u4 s = hn_ld16((const float *)a.codes.scale + c);
  const hn_codes_short way = hn_codes_short_of(&a.codes);
  float scale[4];
  HN_UNROLL for (int k = 0; k < 4; k++) scale[k] = hn_from_bits(s.v[k]);
  const u32 kept = left >= 4 ? ~0u : left <= 0 ? 0 : 0xffffffffu >> (32 - 8 * left);
  u8 *to = (u8 *)a.y + next * a.y_image + oy * a.y_row + ox * a.y_pixel + c;
  HN_UNROLL for (int o = 0; o < HN_TH; o++) {
    if (oy + o >= a.out_y) break;
    HN_UNROLL for (int p = 0; p < HN_TW; p++) {
      if (ox + p >= a.out_x) break;
      *(u32 *)(void *)(to + o * a.y_row + p * a.y_pixel) = hn_requantise4(sum[o][p], scale, 0, 0, way.way, &way, &a.codes) & kept;
    }
  }
}
