/* Resampling by tables: an output is the sum over the taps of all resized dimensions. Prefix: HN_TYPE, HN_OUT,
 * HN_VALUE, HN_W (elements of a vector), HN_ONE (a single tap: elements are copied), HN_SUM, HN_ROUND(sum), HN_RANK,
 * HN_TAPS(d) of dimension d, 0 where it is not resized, HN_ALL (their product): known here, loops over few taps leave
 * neither divisions nor tables of dimensions. */
#include "divide.cuh"
#include "resize_args.h"
#include "typed.cuh"

HN_KERNEL_BOUNDS(hn_resize, hn_resize_args, a, 128, 4) {
  HN_GRID_GO();
  u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= a.work) return;
  i64 x = 0, y = 0;
  i32 row[HN_RANK ? HN_RANK : 1]; /* of the tables */
  bool outside = false;
  HN_UNROLL for (int d = HN_RANK - 1; d >= 0; d--) {
    const u32 q = hn_quotient(i, &a.dim[d]), o = i - q * a.dim[d].by;
    y += o * a.y_step[d];
    row[d] = (i32)o * HN_TAPS(d);
    if (HN_TAPS(d) == 0) x += o * a.x_step[d];
    if (HN_TAPS(d) == 1) x += a.index[d][o] * a.x_step[d];
    if (HN_TAPS(d) > 0) outside |= a.outside[d][o] != 0;
    i = q;
  }
  HN_GRID_WAIT();
  HN_VALUE out[HN_W];
#if HN_ONE
  hn_fetch(a.x, x, out);
#else
  HN_SUM sum[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) sum[w] = 0;
#if HN_ALL <= 16
  HN_UNROLL
#endif
  for (int t = 0; t < HN_ALL; t++) {
    i64 at = x;
    float weight = 1;
    int rest = t;
    HN_UNROLL for (int d = 0; d < HN_RANK; d++) {
      if (HN_TAPS(d) < 2) continue;
      const int k = row[d] + rest % HN_TAPS(d);
      rest /= HN_TAPS(d);
      at += a.index[d][k] * a.x_step[d];
      weight *= a.weight[d][k];
    }
    HN_VALUE v[HN_W];
    hn_fetch(a.x, at, v);
    HN_UNROLL for (int w = 0; w < HN_W; w++) sum[w] += weight == 0 ? 0 : (HN_SUM)weight * (HN_SUM)v[w];
  }
  HN_UNROLL for (int w = 0; w < HN_W; w++) out[w] = HN_ROUND(sum[w]);
#endif
  if (outside) HN_UNROLL for (int w = 0; w < HN_W; w++) out[w] = HN_ROUND(a.extrapolation);
#if HN_W > 1
  hn_u4 r;
  hn_pack(r.v, out, HN_W);
  hn_st16((u8 *)a.y + y * (16 / HN_W), r);
#else
  hn_put(a.y, y, out[0]);
#endif
}
