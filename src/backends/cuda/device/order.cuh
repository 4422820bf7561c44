/* Keys whose integer order is that of elements, and sorting within a block. Prefix: HN_KEY (u32, or u64 for types of 64
 * bits) and HN_KIND of the elements: 0 float, 1 double, 2 signed and 3 unsigned integers. */
#ifndef HN_ORDER_CUH
#define HN_ORDER_CUH

#include "elements.cuh"
#include "rank.cuh"

#define HN_TOP ((HN_KEY)1 << (8 * sizeof(HN_KEY) - 1))
#if HN_KIND == 0
#define HN_KEY_BITS(x) hn_bits(x)
#elif HN_KIND == 1
#define HN_KEY_BITS(x) hn_double_bits(x)
#endif

/* Greater for greater elements; NaN is above everything, and -0 is 0. */
#if HN_KIND < 2
#define HN_ORDER_KEY(x)                                                                                                \
  ((x) != (x) ? ~(HN_KEY)0 : (x) == 0 ? HN_TOP : (x) < 0 ? ~(HN_KEY)HN_KEY_BITS(x) : (HN_KEY)HN_KEY_BITS(x) ^ HN_TOP)
#elif HN_KIND == 2
#define HN_ORDER_KEY(x) ((HN_KEY)(x) ^ HN_TOP)
#else
#define HN_ORDER_KEY(x) ((HN_KEY)(x))
#endif

/* Does (a, i) come before (b, j)? The greater key first, of equal ones the lower index. */
HN_FN int hn_before(HN_KEY a, u32 i, HN_KEY b, u32 j) { return a > b || (a == b && i < j); }

/* Sorts `padded` entries (a power of two) in shared or global memory; all threads of the block take part. Entries that
 * fill up have key 0 and the index ~0. */
HN_FN void hn_block_sort(HN_KEY *key, u32 *index, u32 padded) {
  HN_SYNC();
  for (u32 size = 2; size <= padded; size *= 2)
    for (u32 step = size / 2; step; step /= 2) {
      for (u32 t = threadIdx.x; t < padded / 2; t += blockDim.x) {
        const u32 low = 2 * t - (t & (step - 1)), high = low + step;
        const HN_KEY a = key[low], b = key[high];
        const u32 i = index[low], j = index[high];
        if (hn_before(b, j, a, i) == ((low & size) == 0)) {
          key[low] = b, key[high] = a;
          index[low] = j, index[high] = i;
        }
      }
      HN_SYNC();
    }
}

#endif
