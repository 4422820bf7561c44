/* Planes of bytes, up to four of them, to pixels of 16 bytes with zeros behind the channels: a thread makes four pixels, of
 * words of four bytes of a plane. Planes are whole words. */
#include "divide.cuh"
#include "elements.cuh"
#include "moves_args.h"

HN_KERNEL_BOUNDS(code_pixels, hn_planes_args, a, 256, 6) {
  const u32 image = hn_quotient(blockIdx.x, &a.groups);
  const u32 word = (blockIdx.x - image * a.groups.by) * 256 + threadIdx.x;
  HN_GRID_GO();
  if (word * 4 >= a.pixels) return;
  const u8 *from = (const u8 *)a.from + image * a.image_planes + word * 4;
  hn_u4 *to = (hn_u4 *)a.to + image * (i64)a.pixels + word * 4;
  u32 x[4] = {0, 0, 0, 0};
  HN_GRID_WAIT();
  HN_UNROLL for (u32 c = 0; c < 4; c++)
    if (c < a.channels) x[c] = *(const u32 *)(const void *)(from + c * a.plane);
  HN_UNROLL for (u32 p = 0; p < 4; p++) {
    const u32 low = hn_bytes(x[0], x[1], 0x0040 + 0x0011 * p), high = hn_bytes(x[2], x[3], 0x0040 + 0x0011 * p);
    const hn_u4 v = {{hn_bytes(low, high, 0x5410), 0, 0, 0}};
    hn_st16(to + p, v);
  }
}
