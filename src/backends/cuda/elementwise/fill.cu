/* Tensors that are made of a few numbers.
 *   hn_fill    ConstantOfShape: p 0 or f 0
 *   hn_range   Range: p or f 0 and 1: the first element, and the distance of the next */
#include "direct.cuh"

HN_EACH(hn_fill) {
#if HN_FLOATING
  HN_OUT(0, i, a->f[0]);
#else
  HN_OUT(0, i, a->p[0]);
#endif
}

HN_EACH(hn_range) {
#if HN_FLOATING
  HN_OUT(0, i, a->f[0] + (double)i * a->f[1]);
#else
  HN_OUT(0, i, (u64)a->p[0] + (u64)i * (u64)a->p[1]);
#endif
}
