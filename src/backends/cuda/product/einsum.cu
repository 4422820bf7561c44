/* Einsum by its loops: a thread an element of the result. p: loops, how many of them are sums (the last ones), operands;
 * from 4 sizes, from 4 + HN_LOOPS the steps of the operands, HN_LOOPS numbers each. Integers wrap. */
#include "direct.cuh"

#if HN_FLOATING
typedef HN_REAL hn_product;
#define HN_FACTOR(k, at) (hn_product)HN_IN(k, at)
#else
typedef u64 hn_product;
#define HN_FACTOR(k, at) (u64)(i64)HN_IN(k, at)
#endif

HN_EACH(hn_einsum) {
  const i64 *size = a->p + 4, *step = size + HN_LOOPS;
  const int loops = (int)a->p[0], summed = (int)a->p[1], outer = loops - summed;
  i64 at[HN_OPERANDS], rest = i, turns = 1;
  HN_UNROLL for (int k = 0; k < HN_OPERANDS; k++) at[k] = 0;
  for (int d = outer - 1; d >= 0; d--) {
    const i64 more = rest / size[d], here = rest - more * size[d];
    HN_UNROLL for (int k = 0; k < HN_OPERANDS; k++) at[k] += here * step[k * HN_LOOPS + d];
    rest = more;
  }
  for (int d = outer; d < loops; d++) turns *= size[d];
  hn_product sum = 0;
  for (i64 t = 0; t < turns; t++) {
    i64 from[HN_OPERANDS], left = t;
    HN_UNROLL for (int k = 0; k < HN_OPERANDS; k++) from[k] = at[k];
    for (int d = loops - 1; d >= outer; d--) {
      const i64 more = left / size[d], here = left - more * size[d];
      HN_UNROLL for (int k = 0; k < HN_OPERANDS; k++) from[k] += here * step[k * HN_LOOPS + d];
      left = more;
    }
    hn_product product = HN_FACTOR(0, from[0]);
#if HN_OPERANDS > 1
    product *= HN_FACTOR(1, from[1]);
#endif
#if HN_OPERANDS > 2
    product *= HN_FACTOR(2, from[2]);
#endif
    sum += product;
  }
  HN_OUT(0, i, sum);
}
