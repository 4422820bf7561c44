/* The frame of generated elementwise kernels. What stands before it (elementwise/elementwise.c) defines
 *   HN_UNROLLED            vectors a thread
 *   hn_place, hn_raw       where a vector lies in every operand, and its loaded bits
 *   hn_place_of, hn_fetch, hn_finish
 * All loads of a thread come before its first store: enough bytes are in flight, and outputs may lie in the
 * memory of inputs that step alike. */
#include "prelude.cuh"
#include "elementwise_args.h"

HN_KERNEL(elementwise, hn_elementwise_args, a) {
  const u32 first = blockIdx.x * (blockDim.x * HN_UNROLLED) + threadIdx.x;
  hn_place place[HN_UNROLLED];
  hn_raw raw[HN_UNROLLED];
  HN_GRID_GO();
  HN_UNROLL for (int u = 0; u < HN_UNROLLED; u++) {
    const u32 v = first + (u32)u * blockDim.x;
    if (v < a.vectors) hn_place_of(&a, v, &place[u]);
  }
  HN_GRID_WAIT();
  HN_UNROLL for (int u = 0; u < HN_UNROLLED; u++) {
    if (first + (u32)u * blockDim.x < a.vectors) hn_fetch(&a, &place[u], &raw[u]);
  }
  HN_UNROLL for (int u = 0; u < HN_UNROLLED; u++) {
    if (first + (u32)u * blockDim.x < a.vectors) hn_finish(&a, &place[u], &raw[u]);
  }
}
