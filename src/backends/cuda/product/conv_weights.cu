/* Weights that the host never sees, as conv_direct.cu wants them. Prefix: HN_T. A thread an element of the result. */
#include "conv_weights_args.h"
#include "prelude.cuh"

HN_KERNEL(hn_conv_weights, hn_conv_weights_args, a) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (i >= a.count) return;
  const i32 row = (i32)(i / (u32)a.pitch), channel = (i32)(i - (u32)row * (u32)a.pitch);
  const i32 tap = row / a.cin, k = row - tap * a.cin, group = channel / a.cout;
  const i64 filter = a.transposed ? ((i64)group * a.cin + k) * a.cout + (channel - group * a.cout)
                                  : (i64)channel * a.cin + k;
  a.to[i] = channel < a.channels ? hn_load(a.from, filter * a.taps + tap) : 0.0f;
}
