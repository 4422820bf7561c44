/* DepthwiseConvBnReLU on a GPU. depthwise_strip is for windows of 3x3 that step by 1 or 2 (STEP): a thread makes four
 * results in each of 8 lines below each other, so that an input is read by few threads, and four elements at once where
 * lines begin at whole fours. depthwise takes what is left, four results in a row a thread. LOAD and STORE say the type
 * of x and y, WIDE (one word, or none) whether it is f32 or f16; constants and sums are f32. */
#include "hone.cuh"

typedef struct depthwise_args { /* the same as in depthwise_conv_bn_relu_cuda.c */
  const void *x;
  const float *w; /* of a channel: taps, what is added, factor, what is added last, a power of 2 */
  void *y;
  i64 channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], quads, strips, all, aligned;
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

enum { STRIP = 8 }; /* lines of a thread; the same as in depthwise_conv_bn_relu_cuda.c */

#ifdef STEP
enum { SPAN = 3 * STEP + 3 }; /* elements of a line under four windows beside each other */

#ifdef HALF
HN_FN void load4(const void *p, i64 at, float *v) {
  const uint2 x = *(const uint2 *)((const u16 *)p + at);
  v[0] = hn_f16((u16)(x.x & 0xffff)), v[1] = hn_f16((u16)(x.x >> 16));
  v[2] = hn_f16((u16)(x.y & 0xffff)), v[3] = hn_f16((u16)(x.y >> 16));
}
HN_FN void store4(void *p, i64 at, const float *v) {
  uint2 x;
  x.x = hn_to_f16(v[0]) | (u32)hn_to_f16(v[1]) << 16;
  x.y = hn_to_f16(v[2]) | (u32)hn_to_f16(v[3]) << 16;
  *(uint2 *)((u16 *)p + at) = x;
}
#else
HN_FN void load4(const void *p, i64 at, float *v) {
  const float4 x = *(const float4 *)((const float *)p + at);
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}
HN_FN void store4(void *p, i64 at, const float *v) { *(float4 *)((float *)p + at) = make_float4(v[0], v[1], v[2], v[3]); }
#endif

HN_KERNEL(depthwise_strip, depthwise_args, a) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  if (i >= (u32)a.all) return;
  const u32 rest = i / (u32)a.quads, plane = rest / (u32)a.strips;
  const int ox = (int)(i % (u32)a.quads) * 4, oy = (int)(rest % (u32)a.strips) * STRIP;
  const int high = (int)a.in[0], wide = (int)a.in[1], high_out = (int)a.out[0], wide_out = (int)a.out[1];
  const float *w = a.w + plane % (u32)a.channels * 13;
  const i64 to = (i64)plane * high_out * wide_out;
  const int left = ox * STEP - (int)a.pad[1], top = oy * STEP - (int)a.pad[0];
  const int fours = a.aligned && wide % 4 == 0 && a.pad[1] == 1; /* element left + 1 begins a four */
  float tap[9], sum[STRIP][4], none = 0;
  HN_UNROLL
  for (int t = 0; t < 9; t++) tap[t] = w[t], none += tap[t] * 0;
  const int plain = w[12] == 1 && none == 0; /* else nothing may stand for what lies beside the picture: 0 inf is no 0 */
  HN_UNROLL
  for (int r = 0; r < STRIP; r++)
    HN_UNROLL
    for (int k = 0; k < 4; k++) sum[r][k] = w[9];
  HN_UNROLL
  for (int line = 0; line < (STRIP - 1) * STEP + 3; line++) {
    const int iy = top + line;
    if (iy < 0 || iy >= high) continue;
    const i64 from = ((i64)plane * high + iy) * wide;
    float v[SPAN];
    if (fours && left + SPAN <= wide) {
      v[0] = left >= 0 ? LOAD(a.x, from + left) : 0;
      HN_UNROLL
      for (int k = 0; k < STEP; k++) load4(a.x, from + left + 1 + 4 * k, v + 1 + 4 * k);
      if (STEP == 1) v[SPAN - 1] = LOAD(a.x, from + left + SPAN - 1);
    } else {
      HN_UNROLL
      for (int k = 0; k < SPAN; k++) v[k] = left + k >= 0 && left + k < wide ? LOAD(a.x, from + left + k) : 0;
    }
    HN_UNROLL
    for (int r = 0; r < STRIP; r++) {
      const int row = line - r * STEP; /* of the window of result line r */
      if (row < 0 || row > 2) continue;
      HN_UNROLL
      for (int c = 0; c < 3; c++)
        HN_UNROLL
        for (int k = 0; k < 4; k++) sum[r][k] += v[k * STEP + c] * tap[row * 3 + c];
    }
  }
  HN_UNROLL
  for (int r = 0; r < STRIP; r++) {
    if (oy + r >= high_out) break;
    float y[4];
    HN_UNROLL
    for (int k = 0; k < 4; k++) {
      y[k] = plain               ? sum[r][k] * w[10] + w[11]
             : ox + k < wide_out ? precisely(&a, w, plane, oy + r, ox + k)
                                 : 0;
      y[k] = y[k] > 0 || y[k] != y[k] ? y[k] : 0;
    }
    const i64 at = to + (i64)(oy + r) * wide_out + ox;
    if (a.aligned && wide_out % 4 == 0) store4(a.y, at, y);
    else {
      HN_UNROLL
      for (int k = 0; k < 4; k++)
        if (ox + k < wide_out) STORE(a.y, at + k, y[k]);
    }
  }
}
#endif
