/* What kernels of plugins may include: words for kernels (HN_KERNEL, HN_FN, HN_SHARED, HN_SYNC), f16 and bf16
 * (hn_f16, hn_to_f16, hn_bf16, hn_to_bf16), 16 bytes at once (hn_ld16, hn_st16). Beside it "corners.cuh", boxes and
 * their overlap, and "suppress.cuh", non-maximum suppression by a block. */
#ifndef HN_HONE_CUH
#define HN_HONE_CUH

#include "prelude.cuh"

#endif
