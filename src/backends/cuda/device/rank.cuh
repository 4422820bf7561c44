/* Places of things within a block of 256 threads. */
#ifndef HN_RANK_CUH
#define HN_RANK_CUH

#include "prelude.cuh"

/* The sum of x over the threads up to this one; `shared` has 256 entries. */
HN_FN u32 hn_block_scan(u32 x, u32 *shared) {
  const u32 t = threadIdx.x;
  HN_SYNC(); /* what was there has been read */
  shared[t] = x;
  for (u32 step = 1; step < 256; step *= 2) {
    HN_SYNC();
    const u32 before = t >= step ? shared[t - step] : 0;
    HN_SYNC();
    shared[t] += before;
  }
  HN_SYNC();
  return shared[t];
}

/* How many threads below this one have `yes`, and in *total how many have. */
HN_FN u32 hn_block_rank(int yes, u32 *shared, u32 *total) {
  const u32 upto = hn_block_scan(yes != 0, shared);
  *total = shared[255];
  return upto - (yes != 0);
}

/* Numbers become the sums of those before them; returns the sum of all. */
HN_FN u32 hn_block_offsets(u32 *number, u32 n, u32 *shared) {
  u32 sum = 0;
  for (u32 base = 0; base < n; base += 256) {
    const u32 at = base + threadIdx.x, mine = at < n ? number[at] : 0;
    const u32 upto = hn_block_scan(mine, shared);
    if (at < n) number[at] = sum + upto - mine;
    sum += shared[255];
  }
  return sum;
}

#endif
