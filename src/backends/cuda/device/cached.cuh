/* What kernels know of caches of keys and values whose rows have lengths of their own. */
#ifndef HN_CACHED_CUH
#define HN_CACHED_CUH

#include "prelude.cuh"

#include "cached_args.h"

/* Tokens of input b that stood in the cache before; none where the run is about all there are. -1: the lengths say
 * what cannot be. */
HN_FN i64 hn_cached_before(const hn_cached_sizes *z, u32 b) {
  const i64 old = z->fresh ? 0 : (i64)z->lengths[b] + 1 - z->tokens;
  return old < 0 || old > z->had || old + z->tokens > z->room ? -1 : old;
}

#endif
