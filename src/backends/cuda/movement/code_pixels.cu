/* Planes of bytes, up to four of them, to pixels of 16 bytes with zeros behind the channels: a thread reads words of four
 * bytes of a plane, and a warp writes its pixels side by side. Planes are whole words. */
#include "divide.cuh"
#include "elements.cuh"
#include "moves_args.h"

HN_KERNEL_BOUNDS(code_pixels, hn_planes_args, a, 256, 6) {
  const u32 image = hn_quotient(blockIdx.x, &a.groups);
  const u32 word = (blockIdx.x - image * a.groups.by) * 256 + threadIdx.x;
  const u32 lane = threadIdx.x & 31, first = (word - lane) * 4;
  HN_GRID_GO();
  const u8 *from = (const u8 *)a.from + image * a.image_planes + word * 4;
  hn_u4 *to = (hn_u4 *)a.to + image * (i64)a.pixels;
  u32 x[4] = {0, 0, 0, 0};
  HN_GRID_WAIT();
  HN_UNROLL for (u32 c = 0; c < 4; c++)
    if (c < a.channels && word * 4 < a.pixels) x[c] = *(const u32 *)(const void *)(from + c * a.plane);
  const u32 pick = 0x0040 + 0x0011 * (lane & 3);
  HN_UNROLL for (u32 s = 0; s < 4; s++) {
    u32 y[4] = {0, 0, 0, 0};
    HN_UNROLL for (u32 c = 0; c < 4; c++)
      if (c < a.channels) y[c] = hn_shfl_u32(x[c], (int)(8 * s + lane / 4));
    const u32 pixel = first + 32 * s + lane;
    const hn_u4 v = {{hn_bytes(hn_bytes(y[0], y[1], pick), hn_bytes(y[2], y[3], pick), 0x5410), 0, 0, 0}};
    if (pixel < a.pixels) hn_st16(to + pixel, v);
  }
}
