/* QuantizeLinear of planes, up to four of them, to pixels of codes: a thread reads four neighbouring pixels of every
 * plane. Pixels of four bytes leave as they are made; those of 16 have zeros behind their channels, and a warp writes
 * them side by side.
 * Prefix: HN_T (f32, f16, bf16), HN_PIXEL (4, 16). */
#include "divide.cuh"
#include "elements.cuh"
#include "quantise.cuh"
#include "quantize_pixels_args.h"

HN_KERNEL_BOUNDS(quantize_pixels, hn_quantize_pixels_args, a, 256, 4) {
  const u32 image = hn_quotient(blockIdx.x, &a.groups);
  const u32 first = ((blockIdx.x - image * a.groups.by) * 256 + threadIdx.x) * 4, lane = threadIdx.x & 31;
  const i64 from = image * a.image_planes + first;
  u32 w[4] = {0, 0, 0, 0};
  HN_GRID_GO();
  HN_GRID_WAIT();
  HN_UNROLL for (u32 c = 0; c < 4; c++) {
    if (c >= a.channels || first >= a.pixels) continue;
    u32 words[HN_SIZE]; /* four elements */
    hn_ld_words(words, (const u8 *)a.x + (from + c * a.plane) * HN_SIZE, 4 * HN_SIZE);
    HN_UNROLL for (int k = 0; k < 4; k++)
      w[k] |= (u32)(hn_quantise(HN_PASTE(hn_word_, HN_T)(words, k), &a.codes) & 0xff) << (8 * c);
  }
#if HN_PIXEL == 4
  const hn_u4 v = {{w[0], w[1], w[2], w[3]}};
  if (first < a.pixels) hn_st16((u32 *)a.y + image * (i64)a.pixels + first, v);
#else
  hn_u4 *to = (hn_u4 *)a.y + image * (i64)a.pixels;
  HN_UNROLL for (u32 s = 0; s < 4; s++) {
    u32 y[4];
    HN_UNROLL for (u32 k = 0; k < 4; k++) y[k] = hn_shfl_u32(w[k], (int)(8 * s + lane / 4));
    const u32 pixel = first - lane * 4 + 32 * s + lane, low = lane & 1 ? y[1] : y[0], high = lane & 1 ? y[3] : y[2];
    const hn_u4 v = {{lane & 2 ? high : low, 0, 0, 0}};
    if (pixel < a.pixels) hn_st16(to + pixel, v);
  }
#endif
}
