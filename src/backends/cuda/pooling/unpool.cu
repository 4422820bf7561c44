/* MaxUnpool: a thread an input element; the output begins as zeros. Col2Im: a thread an output element. */
#include "direct.cuh"

#ifdef HN_UNPOOL
/* p: rank, elements that the indices count; from 4 the dimensions that they count in, from 12 the output's. Indices
 * outside are passed over: a device cannot refuse them. */
HN_EACH(hn_max_unpool) {
  i64 left = (i64)HN_IN(1, i), at = 0, step = 1;
  int outside = left < 0 || left >= a->p[1];
  for (int d = (int)a->p[0] - 1; d >= 0; d--) {
    const i64 next = left / a->p[4 + d], place = left - next * a->p[4 + d];
    outside |= place >= a->p[12 + d];
    at += place * step, step *= a->p[12 + d], left = next;
  }
  if (!outside) HN_OUT(0, at, HN_IN(0, i));
}
#else
/* p: axes, taps of a block, blocks; from 4 image, from 12 block, from 20 blocks along the axes, from 28 strides, from
 * 34 dilations, from 40 pads */
HN_EACH(hn_col2im) {
  const int axes = (int)a->p[0];
  i64 place[6], rest = i;
  for (int d = axes - 1; d >= 0; d--) {
    const i64 next = rest / a->p[4 + d];
    place[d] = rest - next * a->p[4 + d] + a->p[40 + d], rest = next;
  }
  double sum = 0;
  for (i64 tap = 0; tap < a->p[1]; tap++) {
    i64 left = tap, from = 0, step = 1;
    int meets = 1;
    for (int d = axes - 1; d >= 0; d--) {
      const i64 next = left / a->p[12 + d], at = place[d] - (left - next * a->p[12 + d]) * a->p[34 + d];
      const i64 block = at / a->p[28 + d];
      meets = meets && at >= 0 && block * a->p[28 + d] == at && block < a->p[20 + d];
      from += block * step, step *= a->p[20 + d], left = next;
    }
    if (meets) sum += HN_IN(0, (rest * a->p[1] + tap) * a->p[2] + from);
  }
  HN_OUT(0, i, sum);
}
#endif
