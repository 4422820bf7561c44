/* How warpgroup products of codes end. The packed weights' columns are exchanged within sixteens (hn_wgmma_pack), so that
 * a thread has four neighbouring channels of a row: column 8 h + 2 q + e of sixteen is channel 4 q + 2 h + e. */
#ifndef HN_WGMMA_CODES_CUH
#define HN_WGMMA_CODES_CUH

#include "codes.cuh"
#include "lacking.cuh"
#include "wgmma.cuh"

#define HN_KEPT 0 /* its vectors come from memory */
enum { PANEL = HN_BN < 128 ? HN_BN : 128 }; /* columns, and bytes, of a row that the copy engine takes */

HN_FN void put_partial(u32 to, u32 quarter, const i32 *d) {
  HN_UNROLL for (u32 b = 0; b < HN_BN / 16; b++) {
    u32 at = to + b * 64 + quarter * 16;
    HN_UNROLL for (u32 r = 0; r < 2; r++) {
      hn_shared_st8(at + r * 8 * PARTIAL_ROW, (u32)d[8 * b + 2 * r], (u32)d[8 * b + 2 * r + 1]);
      hn_shared_st8(at + r * 8 * PARTIAL_ROW + 8, (u32)d[8 * b + 4 + 2 * r], (u32)d[8 * b + 5 + 2 * r]);
    }
  }
}

/* Bias and scale of four channels, which vectors of whole tiles have. */
typedef struct vectors {
  i32 bias[4], zeros[4];
  float scale[4];
} vectors;
HN_FN void vectors_at(const hn_conv_wgmma_args *g, i32 channel, vectors *v) {
  hn_u4 b = hn_ld16((const i32 *)g->codes.bias + channel), s = hn_ld16((const float *)g->codes.scale + channel);
  HN_UNROLL for (u32 k = 0; k < 4; k++) v->bias[k] = (i32)b.v[k], v->scale[k] = hn_from_bits(s.v[k]);
#ifdef HN_ZEROS
  const hn_u4 z = hn_ld16((const i32 *)g->codes.zeros + channel);
  HN_UNROLL for (u32 k = 0; k < 4; k++) v->zeros[k] = (i32)z.v[k];
#endif
}

/* Four sums of channels from `channel` on, as codes. HN_MASKED: pixels have padding, which is zero. */
HN_FN u32 codes_of(const hn_conv_wgmma_args *g, i32 a, i32 b, i32 c, i32 d, const vectors *v, u32 added, u32 way,
                   const hn_codes_short *s, i32 channel) {
  i32 sum[4] = {a + v->bias[0], b + v->bias[1], c + v->bias[2], d + v->bias[3]};
  u32 w = hn_requantise4(sum, v->scale, v->zeros, added, way, s, &g->codes);
#ifdef HN_MASKED
  i32 left = g->n - channel;
  return left >= 4 ? w : left <= 0 ? 0 : w & 0xffffffffu >> (32 - 8 * left);
#else
  (void)channel;
  return w;
#endif
}

#ifdef HN_BORDER
/* What a pixel lacks because taps outside of the image read zeros: a vector of all columns; NULL for nothing. */
HN_FN const i32 *lacking_at(const hn_conv_wgmma_args *g, i32 pixel) {
  const i32 kind = kind_of(g, pixel);
  return kind ? lacking_of(g, kind) : 0;
}

/* Of all rows of a thread, where the sums lie. */
HN_FN void add_lacking(const hn_conv_wgmma_args *g, i32 (*d)[HN_BN / 2], i32 row0, i32 column0, u32 warp, u32 lane) {
  HN_UNROLL for (u32 m = 0; m < HN_WM; m++) HN_UNROLL for (u32 r = 0; r < 2; r++) {
    const i32 *from = lacking_at(g, row0 + (i32)(m * 64 + warp * 16 + lane / 4 + r * 8));
    if (!from) continue;
    from += column0 + (i32)(lane & 3) * 4;
    HN_UNROLL for (u32 b = 0; b < HN_BN / 16; b++) {
      const hn_u4 v = hn_ld16(from + 16 * b);
      i32 *x = d[m] + 8 * b + 2 * r;
      x[0] += (i32)v.v[0], x[1] += (i32)v.v[1], x[4] += (i32)v.v[2], x[5] += (i32)v.v[3];
    }
  }
}
#endif

/* Eight channels of a pixel. */
HN_FN void finish(const hn_conv_wgmma_args *g, i32 x[8], i32 pixel, i32 channel) {
  if (pixel >= g->pixels || channel >= g->columns) return;
  i64 at = (i64)pixel * g->y_pixel + channel;
  const hn_codes_short s = hn_codes_short_of(&g->codes);
  u32 w[2];
#ifdef HN_BORDER
  const i32 *from = lacking_at(g, pixel);
  if (from) HN_UNROLL for (i32 k = 0; k < 8; k++) x[k] += from[channel + k];
#endif
  HN_UNROLL for (i32 h = 0; h < 2; h++) {
    u32 added = 0;
    vectors v;
    vectors_at(g, channel + 4 * h, &v);
#ifdef HN_ADDED
    added = *(const u32 *)(const void *)((const u8 *)g->codes.added + at + 4 * h);
#endif
    w[h] = codes_of(g, x[4 * h], x[4 * h + 1], x[4 * h + 2], x[4 * h + 3], &v, added, s.way, &s, channel + 4 * h);
  }
  *(u64 *)(void *)((u8 *)g->y + at) = (u64)w[1] << 32 | w[0];
}

/* Where sixteen codes of a row lie in the panels, as the copy engine exchanges them. */
HN_FN u32 panel_at(u32 staging, u32 row, u32 sixteen) {
  u32 c = sixteen % (PANEL / 16), turn = PANEL == 128 ? row & 7 : row >> 1 & 3;
  return staging + sixteen / (PANEL / 16) * (GROUP_ROWS * PANEL) + row * PANEL + ((c ^ turn) << 4);
}

HN_FN void store_codes(const hn_conv_wgmma_args *g, i32 (*d)[HN_BN / 2], u32 staging, i32 column0, u32 warp, u32 lane,
                       u32 way, const hn_codes_short *s) {
  i32 channel = column0 + (i32)(lane & 3) * 4;
  vectors now[2], next[2];
  HN_UNROLL for (i32 h = 0; h < 2; h++) vectors_at(g, channel + 16 * h, &next[h]);
  HN_UNROLL for (u32 b = 0; b < HN_BN / 16; b += 2, channel += 32) {
    if (column0 + 16 * (i32)b >= g->columns) break; /* the copy engine does not store them */
    HN_UNROLL for (i32 h = 0; h < 2; h++) {
      now[h] = next[h];
      if (b + 2 < HN_BN / 16) vectors_at(g, channel + 32 + 16 * h, &next[h]);
    }
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      u32 at = panel_at(staging, m * 64 + warp * 16 + (lane & 15), b + lane / 16);
      hn_u4 v;
#if HN_STAGED
      hn_u4 added = hn_matrix_load(at);
#endif
      HN_UNROLL for (u32 k = 0; k < 4; k++) { /* row r or r + 8, of sixteen b or b + 1 */
        const i32 *x = d[m] + 8 * (b + k / 2) + 2 * (k & 1);
#if HN_STAGED
        u32 other = added.v[k];
#else
        u32 other = 0;
#endif
        v.v[k] = codes_of(g, x[0], x[1], x[4], x[5], &now[k / 2], other, way, s, channel + 16 * (i32)(k / 2));
      }
      hn_matrix_store(at, v);
    }
  }
}

HN_FN void finish_tile(const hn_conv_wgmma_args *g, i32 (*d)[HN_BN / 2], u32 staging, u32 kept, i32 row0, i32 column0,
                       u32 warp, u32 lane) {
  (void)kept;
#ifdef HN_BORDER
  add_lacking(g, d, row0, column0, warp, lane);
#else
  (void)row0;
#endif
  const hn_codes_short s = hn_codes_short_of(&g->codes);
#ifdef HN_ADDED
  if (s.way == HN_CODES_PARTS) return store_codes(g, d, staging, column0, warp, lane, HN_CODES_PARTS, &s);
#endif
  if (s.way == HN_CODES_SHORT) return store_codes(g, d, staging, column0, warp, lane, HN_CODES_SHORT, &s);
  store_codes(g, d, staging, column0, warp, lane, HN_CODES_LONG, &s);
}

#endif
