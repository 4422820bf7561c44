/* Places of things within a block of 256 threads. */
#ifndef HN_RANK_CUH
#define HN_RANK_CUH

#include "prelude.cuh"

/* Sums of the warps below this one and, in *total, of all; `mine` is the warp's, known to its last thread. */
HN_FN u32 hn_block_warps(u32 mine, u32 *shared, u32 *total) {
  const u32 warp = threadIdx.x / 32;
  u32 below = 0, all = 0;
  HN_SYNC(); /* what was there has been read */
  if (threadIdx.x % 32 == 31) shared[warp] = mine;
  HN_SYNC();
  HN_UNROLL for (u32 w = 0; w < 8; w++) {
    const u32 sum = shared[w];
    if (w < warp) below += sum;
    all += sum;
  }
  *total = all;
  return below;
}

/* The sum of x over the threads up to this one, and in *total over all; `shared` has 8 entries. */
HN_FN u32 hn_block_scan(u32 x, u32 *shared, u32 *total) {
  const u32 lane = threadIdx.x % 32;
  HN_UNROLL for (u32 step = 1; step < 32; step *= 2) {
    const u32 before = hn_shfl_u32(x, (int)(lane >= step ? lane - step : lane));
    if (lane >= step) x += before;
  }
  return x + hn_block_warps(x, shared, total);
}

/* How many threads below this one have `yes`, and in *total how many have. */
HN_FN u32 hn_block_rank(int yes, u32 *shared, u32 *total) {
  const u32 all = hn_ballot(yes);
  return (u32)__popc(all & ((1u << threadIdx.x % 32) - 1)) + hn_block_warps((u32)__popc(all), shared, total);
}

/* Numbers become the sums of those before them; returns the sum of all. */
HN_FN u32 hn_block_offsets(u32 *number, u32 n, u32 *shared) {
  u32 sum = 0, total;
  for (u32 base = 0; base < n; base += 256) {
    const u32 at = base + threadIdx.x, mine = at < n ? number[at] : 0;
    const u32 upto = hn_block_scan(mine, shared, &total);
    if (at < n) number[at] = sum + upto - mine;
    sum += total;
  }
  return sum;
}

#endif
