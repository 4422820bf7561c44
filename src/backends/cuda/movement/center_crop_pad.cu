/* CenterCropPad: a thread an output element. p: rank; from 4 the input's dimensions, from 12 the output's, from 20 how
 * far the input begins before the output (behind it where negative) */
#include "direct.cuh"

HN_EACH(hn_center_crop_pad) {
  i64 from = 0, step = 1;
  u32 rest = i;
  int outside = 0;
  for (int d = (int)a->p[0] - 1; d >= 0; d--) {
    const u32 n = (u32)a->p[12 + d], next = rest / n;
    const i64 at = (i64)(rest - next * n) + a->p[20 + d];
    outside |= at < 0 || at >= a->p[4 + d];
    from += at * step, step *= a->p[4 + d], rest = next;
  }
  if (outside)
    HN_OUT(0, i, 0);
  else
    HN_OUT(0, i, HN_IN(0, from));
}
