/* elements.cuh by the prefix's types: what is read has HN_TYPE, what is written HN_OUT. */
#ifndef HN_TYPED_CUH
#define HN_TYPED_CUH

#include "elements.cuh"

#define hn_get HN_PASTE(hn_get_, HN_TYPE)
#define hn_word HN_PASTE(hn_word_, HN_TYPE)
#define hn_put HN_PASTE(hn_put_, HN_OUT)
#define hn_pack HN_PASTE(hn_pack_, HN_OUT)

#if defined(HN_W) && defined(HN_VALUE)
/* HN_W values from element `at` on. */
HN_FN void hn_fetch(const void *x, i64 at, HN_VALUE v[HN_W]) {
#if HN_W == 1
  v[0] = hn_get(x, at);
#else
  const hn_u4 r = hn_ld16((const u8 *)x + at * (16 / HN_W));
  HN_UNROLL for (int k = 0; k < HN_W; k++) v[k] = hn_word(r.v, k);
#endif
}
#endif

#endif
