/* DepthwiseConvBnReLU on a GPU: a thread makes four results in a row of one plane. LOAD and STORE say the type of x and
 * y; constants and sums are f32. */
#include "hone.cuh"

typedef struct depthwise_args { /* the same as in depthwise_conv_bn_relu_cuda.c */
  const void *x;
  const float *w; /* of a channel: taps, what is added, factor, what is added last, a power of 2 */
  void *y;
  i64 channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], quads, all;
} depthwise_args;

/* One result, of a channel that f32 is too narrow for. */
HN_FN float precisely(const depthwise_args *a, const float *w, i64 plane, i64 oy, i64 ox) {
  const i64 taps = a->kernel[0] * a->kernel[1];
  double sum = (double)w[taps];
  for (i64 t = 0; t < taps; t++) {
    const i64 iy = oy * a->stride[0] - a->pad[0] + t / a->kernel[1] * a->dilation[0],
              ix = ox * a->stride[1] - a->pad[1] + t % a->kernel[1] * a->dilation[1];
    if (iy >= 0 && iy < a->in[0] && ix >= 0 && ix < a->in[1])
      sum += (double)LOAD(a->x, (plane * a->in[0] + iy) * a->in[1] + ix) * (double)w[t];
  }
  return (float)(sum * (double)w[taps + 1] * (double)w[taps + 3] + (double)w[taps + 2]);
}

HN_KERNEL(depthwise, depthwise_args, a) {
  const i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
  if (i >= a.all) return;
  const i64 ox = i % a.quads * 4, oy = i / a.quads % a.out[0], plane = i / a.quads / a.out[0];
  const i64 taps = a.kernel[0] * a.kernel[1];
  const float *w = a.w + plane % a.channels * (taps + 4);
  float sum[4];
  HN_UNROLL
  for (int k = 0; k < 4; k++) sum[k] = w[taps];
  for (i64 r = 0; r < a.kernel[0]; r++) {
    const i64 iy = oy * a.stride[0] - a.pad[0] + r * a.dilation[0];
    if (iy < 0 || iy >= a.in[0]) continue;
    const i64 line = (plane * a.in[0] + iy) * a.in[1];
    for (i64 c = 0; c < a.kernel[1]; c++) {
      const float tap = w[r * a.kernel[1] + c];
      const i64 ix = ox * a.stride[1] - a.pad[1] + c * a.dilation[1];
      HN_UNROLL
      for (int k = 0; k < 4; k++) {
        const i64 at = ix + k * a.stride[1];
        if (at >= 0 && at < a.in[1]) sum[k] += LOAD(a.x, line + at) * tap;
      }
    }
  }
  HN_UNROLL
  for (int k = 0; k < 4; k++) {
    if (ox + k >= a.out[1]) break;
    const float y = w[taps + 3] == 1 ? sum[k] * w[taps + 1] + w[taps + 2] : precisely(&a, w, plane, oy, ox + k);
    STORE(a.y, (plane * a.out[0] + oy) * a.out[1] + ox + k, y > 0 || y != y ? y : 0);
  }
}
