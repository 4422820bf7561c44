/* Averages over all pixels of codes, channels-last, as codes: exact sums, one multiplication, one rounding. A block has
 * 128 channels of an image, four a thread; its eight warps share the pixels.
 * Prefix: HN_CODE, HN_X: u8 or i8; HN_WORDS: four codes may be loaded at once. */
#include "codes.cuh"
#include "codes_average_args.h"

HN_KERNEL_BOUNDS(codes_average, hn_codes_average_args, a, 256, 4) {
  HN_SHARED i32 part[8][128];
  const u32 image = blockIdx.x / (u32)a.slabs, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i32 c = (i32)((blockIdx.x - image * (u32)a.slabs) * 128 + lane * 4);
  const u8 *x = (const u8 *)a.x + image * a.image + c;
  i32 sum[4] = {0, 0, 0, 0};
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (c < a.channels)
    for (i32 p = (i32)warp; p < a.pixels; p += 8) {
      u32 w = 0;
#ifdef HN_WORDS
      w = *(const u32 *)(const void *)(x + p * a.pixel);
#else
      HN_UNROLL for (int k = 0; k < 4; k++)
        if (c + k < a.channels) w |= (u32)x[p * a.pixel + k] << (8 * k);
#endif
      HN_UNROLL for (int k = 0; k < 4; k++) sum[k] += (i32)HN_PASTE(HN_PICK_, HN_X)(w, k);
    }
  HN_UNROLL for (int k = 0; k < 4; k++) part[warp][lane * 4 + k] = sum[k];
  HN_SYNC();
  const i32 mine = (i32)((blockIdx.x - image * (u32)a.slabs) * 128 + threadIdx.x);
  if (threadIdx.x >= 128 || mine >= a.stored) return;
  i32 all = -a.taken;
  HN_UNROLL for (int w = 0; w < 8; w++) all += part[w][threadIdx.x];
  const i32 q = __float2int_rn(__fmul_rn((float)all, a.scale)) + a.zero;
  ((u8 *)a.y)[image * a.y_image + mine] = mine < a.channels ? (u8)hn_pack_codes(q, 0, 0, 0) : (u8)0;
}
