/* Convolution of images of up to four channels of codes: what a tile of 16 x 16 output pixels reads lies once in shared
 * memory, four bytes a pixel, and a tap of a pixel is a word of a fragment of A as it lies there. K runs over taps, eight a
 * product. A warp has two rows of the tile; columns of the weights are exchanged as in wgmma_codes.cuh, so that a thread
 * has four neighbouring channels of a pixel.
 * Prefix: HN_T (u8, i8): of x; HN_CODE: of y; HN_KH, HN_KW, HN_SH, HN_SW, HN_DH, HN_DW; HN_NT: eights of columns of a block
 * (even); what codes.cuh knows. */
#include "codes.cuh"
#include "codes_image_args.h"
#include "divide.cuh"

#define hn_mma HN_PASTE(hn_mma_, HN_T)

enum {
  TILE = 16,
  TAPS = HN_KH * HN_KW,
  STEPS = (TAPS + 7) / 8,
  ROWS = (TILE - 1) * HN_SH + (HN_KH - 1) * HN_DH + 1, /* of the image, that a tile reads */
  COLUMNS = (TILE - 1) * HN_SW + (HN_KW - 1) * HN_DW + 1,
  PITCH = COLUMNS | 1,
  WEIGHTS = STEPS * HN_NT * 64 /* words */
};

/* Where tap t of a pixel lies from its first on. */
HN_FN u32 far(u32 t) { return t < TAPS ? t / HN_KW * (HN_DH * PITCH) + t % HN_KW * HN_DW : 0; }

HN_KERNEL_BOUNDS(codes_image, hn_codes_image_args, a, 256, 2) {
  HN_SHARED u32 image[ROWS * PITCH];
  HN_SHARED u64 weights[WEIGHTS / 2]; /* fragments are read eight bytes at once */
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, q = lane % 4, r = lane / 4;
  u32 rest = hn_quotient(blockIdx.x, &a.across), n = hn_quotient(rest, &a.down);
  const i32 ox = (i32)(blockIdx.x - rest * a.across.by) * TILE, oy = (i32)(rest - n * a.down.by) * TILE;
  HN_GRID_GO();
  const hn_u4 *from = (const hn_u4 *)a.weights + (i64)blockIdx.y * (WEIGHTS / 4);
  for (u32 i = threadIdx.x; i < WEIGHTS / 4; i += 256) {
    const hn_u4 v = hn_ld16(from + i);
    weights[2 * i] = (u64)v.v[1] << 32 | v.v[0], weights[2 * i + 1] = (u64)v.v[3] << 32 | v.v[2];
  }
  const i32 channel = (i32)(blockIdx.y * HN_NT * 8 + q * 4);
  i32 bias[HN_NT / 2][4];
  float scale[HN_NT / 2][4];
  HN_UNROLL for (int b = 0; b < HN_NT / 2; b++) {
    const hn_u4 v = hn_ld16((const i32 *)a.codes.bias + channel + 16 * b), s = hn_ld16((const float *)a.codes.scale + channel + 16 * b);
    HN_UNROLL for (int k = 0; k < 4; k++) bias[b][k] = (i32)v.v[k], scale[b][k] = hn_from_bits(s.v[k]);
  }
  const hn_codes_short way = hn_codes_short_of(&a.codes);
  u32 at[STEPS][2];
  HN_UNROLL for (u32 s = 0; s < STEPS; s++) at[s][0] = far(8 * s + q) + r * HN_SW, at[s][1] = far(8 * s + 4 + q) + r * HN_SW;
  HN_GRID_WAIT();
  const u8 *x = (const u8 *)a.x + n * a.x_image;
  for (u32 i = threadIdx.x; i < ROWS * COLUMNS; i += 256) {
    const i32 row = (i32)(i / COLUMNS), column = (i32)(i % COLUMNS), iy = oy * HN_SH - a.pad_y + row, ix = ox * HN_SW - a.pad_x + column;
    const bool in = (u32)iy < (u32)a.in_y && (u32)ix < (u32)a.in_x;
    image[row * PITCH + column] = in ? *(const u32 *)(const void *)(x + iy * a.x_row + ix * a.x_pixel) : a.outside;
  }
  HN_SYNC();
  i32 sum[2][HN_NT][4];
  HN_UNROLL for (int g = 0; g < 2; g++) HN_UNROLL for (int t = 0; t < HN_NT; t++) HN_UNROLL for (int k = 0; k < 4; k++)
      sum[g][t][k] = bias[t / 2][t % 2 * 2 + k % 2];
  HN_UNROLL for (u32 s = 0; s < STEPS; s++) {
    u32 f[2][4];
    HN_UNROLL for (u32 g = 0; g < 2; g++) {
      const u32 *row = image + (warp * 2 + g) * HN_SH * PITCH;
      f[g][0] = row[at[s][0]], f[g][1] = row[at[s][0] + 8 * HN_SW];
      f[g][2] = row[at[s][1]], f[g][3] = row[at[s][1] + 8 * HN_SW];
    }
    HN_UNROLL for (u32 t = 0; t < HN_NT; t++) {
      const u64 w = weights[(s * HN_NT + t) * 32 + lane];
      const u32 b[2] = {(u32)w, (u32)(w >> 32)};
      HN_UNROLL for (u32 g = 0; g < 2; g++) hn_mma(sum[g][t], f[g], b);
    }
  }
  HN_UNROLL for (u32 g = 0; g < 2; g++) HN_UNROLL for (u32 h = 0; h < 2; h++) { /* pixels r and r + 8 of a row */
    const i32 y = oy + (i32)(warp * 2 + g), px = ox + (i32)(r + 8 * h);
    if (y >= a.out_y || px >= a.out_x) continue;
    u8 *to = (u8 *)a.y + n * a.y_image + y * a.y_row + px * a.y_pixel;
    HN_UNROLL for (u32 b = 0; b < HN_NT / 2; b++) {
      const i32 c = channel + 16 * (i32)b, left = a.channels - c;
      if (c >= a.stored) continue;
      const i32 four[4] = {sum[g][2 * b][2 * h], sum[g][2 * b][2 * h + 1], sum[g][2 * b + 1][2 * h], sum[g][2 * b + 1][2 * h + 1]};
      const u32 v = way.way ? hn_requantise4(four, scale[b], 0, 0, HN_CODES_SHORT, &way, &a.codes) : hn_requantise4(four, scale[b], 0, 0, HN_CODES_LONG, &way, &a.codes);
      *(u32 *)(void *)(to + c) = left >= 4 ? v : left <= 0 ? 0 : v & 0xffffffffu >> (32 - 8 * left);
    }
  }
}
