/* How products of codes end whose rows are output channels and whose columns are pixels (as turned.cuh says of floats):
 * through panels of pixels x 64 channels in shared memory, swizzled over their 64 bytes. Rows of the weights are exchanged
 * within sixteens (hn_wgmma_pack), so that a thread's two rows are neighbouring channels, and two codes of a pixel an
 * element of a matrix: row 8 h + i of sixteen is channel 2 i + h. Wanted: what codes.cuh knows, HN_STAGED, HN_N. */
#ifndef HN_TURNED_CODES_CUH
#define HN_TURNED_CODES_CUH

#include "codes.cuh"
#include "transposed.cuh"

/* Where in a panel this thread's rows of matrices lie (32 pixels; of fewer matrices the first lanes' count), and the first
 * of its two channels of the panel's 64. */
HN_FN u32 place_in_panel(u32 warp, u32 lane) { return lane * 64 + ((warp ^ (lane >> 1 & 3)) << 4); }
HN_FN i32 channel_in_panel(u32 warp, u32 lane) { return (i32)(warp * 16 + lane / 4 * 2); }

/* Bias and scale of this thread's channels, and which of them are no padding. */
typedef struct ending {
  i32 bias[2], zero[2];
  float scale[2];
  u32 there;
} ending;
HN_FN void ending_at(const hn_codes_args *c, i32 channels, i32 channel, ending *e) {
  const i32 *bias = (const i32 *)c->bias + channel, left = channels - channel;
  const float *scale = (const float *)c->scale + channel;
  e->bias[0] = bias[0], e->bias[1] = bias[1], e->scale[0] = scale[0], e->scale[1] = scale[1];
#ifdef HN_ZEROS
  e->zero[0] = ((const i32 *)c->zeros)[channel], e->zero[1] = ((const i32 *)c->zeros)[channel + 1];
#else
  e->zero[0] = e->zero[1] = 0;
#endif
  e->there = left > 1 ? 0xffffffffu : left == 1 ? 0x00ff00ffu : 0;
}

#ifdef HN_BORDER
/* Kinds of pixels lie in shared memory, two bytes each. */
HN_FN void put_kind(u32 to, i32 kind) {
  asm volatile("st.shared.u16 [%0], %1;" : : "r"(to), "h"((u16)kind) : "memory");
}
/* kinds: of the first of these pixels, which are eights; of each eight this thread has two. lacking: a vector of `pitch`
 * channels for each kind (quantized/codes_border.h). */
HN_FN void add_lacking(const i32 *lacking, i32 pitch, i32 *d, u32 pixels, u32 kinds, i32 channel, u32 lane) {
  HN_UNROLL for (u32 k = 0; k < pixels / 8; k++) {
    u32 two;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(two) : "r"(kinds + k * 16 + (lane & 3) * 4) : "memory");
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      const i32 kind = (i32)(two >> 16 * i & 0xffff);
      if (!kind) continue;
      const i32 *from = lacking + (i64)kind * pitch + channel;
      d[4 * k + i] += from[0], d[4 * k + 2 + i] += from[1];
    }
  }
}
#endif

HN_FN void finish_way(const hn_codes_args *c, const i32 *d, u32 pixels, const ending *e, u32 to, u32 way, const hn_codes_short *s) {
  const float scale[4] = {e->scale[0], e->scale[1], e->scale[0], e->scale[1]};
  const i32 zeros[4] = {e->zero[0], e->zero[1], e->zero[0], e->zero[1]};
  HN_UNROLL for (u32 k = 0; k < pixels / 8; k += 4, to += 32 * 64) {
    const u32 count = pixels / 8 - k >= 4 ? 4 : pixels / 8 - k;
    u32 v[4], added[4] = {0, 0, 0, 0};
#if HN_STAGED
    load_transposed(to, added, count);
#endif
    HN_UNROLL for (u32 i = 0; i < 4; i++) {
      const i32 *p = d + (k + i) * 4;
      if (i >= count) continue;
      const i32 sum[4] = {p[0] + e->bias[0], p[2] + e->bias[1], p[1] + e->bias[0], p[3] + e->bias[1]};
      v[i] = hn_requantise4(sum, scale, zeros, added[i], way, s, c);
#ifdef HN_MASKED
      v[i] &= e->there;
#endif
    }
    store_transposed(to, v, count);
  }
}

/* `pixels` pixels: 32s, then 16 and 8. to: the thread's place in the panel. */
HN_FN void finish_codes(const hn_codes_args *c, const i32 *d, u32 pixels, const ending *e, u32 to) {
  const hn_codes_short s = hn_codes_short_of(c);
#ifdef HN_ADDED
  if (s.way == HN_CODES_PARTS) return finish_way(c, d, pixels, e, to, HN_CODES_PARTS, &s);
#endif
  if (s.way == HN_CODES_SHORT) return finish_way(c, d, pixels, e, to, HN_CODES_SHORT, &s);
  finish_way(c, d, pixels, e, to, HN_CODES_LONG, &s);
}

#endif
