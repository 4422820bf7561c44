/* Convolution of any kind, and transposed convolution, by its definition: a thread sums four output channels of a
 * pixel in f32. For what faster kernels do not take. Prefix: HN_T, HN_OUT (f32 or HN_T), HN_KD, HN_KH, HN_KW (kernel),
 * HN_TRANSPOSED, HN_SHARED_GROUP (four neighbouring channels always belong to one group). */
#include "prelude.cuh"

#include "conv_direct_args.h"
#include "divide.cuh"

/* The input position that tap k of an output position meets; -1: none. */
HN_FN int hn_source(const hn_conv_direct_args *a, int d, int out, int k) {
#if HN_TRANSPOSED
  const int at = out + a->pad[d] - k * a->dilation[d], q = at / a->stride[d];
  return at >= 0 && q * a->stride[d] == at && q < a->in[d] ? q : -1;
#else
  const int at = out * a->stride[d] - a->pad[d] + k * a->dilation[d];
  return (u32)at < (u32)a->in[d] ? at : -1;
#endif
}

HN_KERNEL_BOUNDS(hn_conv_direct, hn_conv_direct_args, a, 128, 4) {
  HN_GRID_GO();
  u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= a.work) return;
  u32 q = hn_quotient(i, &a.vectors);
  const int c = (int)(i - q * a.vectors.by) * 4;
  i = q;
  int o[3];
  for (int d = 2; d >= 0; d--) q = hn_quotient(i, &a.out[d]), o[d] = (int)(i - q * a.out[d].by), i = q;
  const i64 image = i * a.x_step[0];
  float sum[4] = {0, 0, 0, 0};
  HN_GRID_WAIT();
  for (int kd = 0; kd < HN_KD; kd++) {
    const int z = hn_source(&a, 0, o[0], kd);
    if (z < 0) continue;
    for (int kh = 0; kh < HN_KH; kh++) {
      const int y = hn_source(&a, 1, o[1], kh);
      if (y < 0) continue;
      for (int kw = 0; kw < HN_KW; kw++) {
        const int x = hn_source(&a, 2, o[2], kw);
        if (x < 0) continue;
        const i64 pixel = image + z * a.x_step[1] + y * a.x_step[2] + x * a.x_step[3];
        const float *w = a.w + (i64)((kd * HN_KH + kh) * HN_KW + kw) * a.cin * a.w_pitch + c;
#if HN_SHARED_GROUP
        const i64 from = pixel + (c < a.channels ? c / a.cout : 0) * a.cin;
        for (int k = 0; k < a.cin; k++, w += a.w_pitch) {
          const float v = hn_load(a.x, from + k);
          const hn_u4 f = hn_ld16(w);
          HN_UNROLL for (int j = 0; j < 4; j++) sum[j] += v * hn_from_bits(f.v[j]);
        }
#else
        HN_UNROLL for (int j = 0; j < 4; j++) {
          if (c + j >= a.channels) continue;
          const i64 from = pixel + (c + j) / a.cout * a.cin;
          for (int k = 0; k < a.cin; k++) sum[j] += hn_load(a.x, from + k) * w[k * a.w_pitch + j];
        }
#endif
      }
    }
  }
  const i64 at = i * a.y_step[0] + o[0] * a.y_step[1] + o[1] * a.y_step[2] + o[2] * a.y_step[3] + c;
  hn_epilogue4(sum, c, at, &a.epilogue);
  HN_UNROLL for (int j = 0; j < 4; j++) HN_JOIN(hn_store_, HN_OUT)(a.y, at + j, sum[j]);
}
