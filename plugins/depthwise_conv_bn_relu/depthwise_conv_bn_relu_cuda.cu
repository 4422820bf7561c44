/* DepthwiseConvBnReLU on a GPU. depthwise_strip is for windows of 3x3 that step by 1 or 2 (STEP): a thread makes four
 * results in each of several lines below each other, so that an input is read by few threads, and four elements at
 * once where lines begin at whole fours. It asks for six lines before it computes with the first of them, whatever
 * lies beside the picture: what is on its way is what the memory's speed needs. depthwise takes what is left, four
 * results in a row a thread. LOAD and STORE say the type of x and y, WIDE (one word, or none) whether it is f32 or
 * f16; constants and sums are f32. */
#include "hone.cuh"

typedef struct depthwise_args { /* the same as in depthwise_conv_bn_relu_cuda.c */
  const void *x;
  const float *w; /* of a channel: taps, what is added, factor, what is added last, a power of 2 */
  void *y;
  i64 channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], quads, strips, lines, all, aligned;
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

HN_FN float relu(float y) { return y <= 0 ? 0 : y; } /* NaN stays */

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
    STORE(a.y, (plane * a.out[0] + oy) * a.out[1] + ox + k, relu(y));
  }
}

#ifdef STEP
enum {
  SPAN = 3 * STEP + 3, /* elements of a line under four windows beside each other */
  AHEAD = 6            /* lines that are asked for at once; sums come round after as many */
};

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

/* Which of three sums the line `l` of six belongs to, as row `row` of a window. */
HN_FN int sum_of(int l, int row) { return (l - row + 3 * STEP) / STEP % 3; }

HN_FN void load_line(const depthwise_args *a, i64 from, int left, int wide, int fours, float *v) {
  if (fours) {
    v[0] = LOAD(a->x, from + (left < 0 ? 0 : left));
    HN_UNROLL
    for (int k = 0; k < STEP; k++) load4(a->x, from + left + 1 + 4 * k, v + 1 + 4 * k);
    if (STEP == 1) v[SPAN - 1] = LOAD(a->x, from + (left + SPAN > wide ? wide - 1 : left + SPAN - 1));
  } else {
    HN_UNROLL
    for (int k = 0; k < SPAN; k++) {
      const int x = left + k;
      v[k] = LOAD(a->x, from + (x < 0 ? 0 : x < wide ? x : wide - 1));
    }
  }
}

/* Four results of a line. */
HN_FN void finish(const depthwise_args *a, i64 at, int ox, int fours, const float *w, const float *sum) {
  const int wide_out = (int)a->out[1];
  float y[4];
  HN_UNROLL
  for (int k = 0; k < 4; k++) {
    y[k] = relu(sum[k] * w[0] + w[1]);
  }
  if (fours) store4(a->y, at, y);
  else {
    HN_UNROLL
    for (int k = 0; k < 4; k++)
      if (ox + k < wide_out) STORE(a->y, at + k, y[k]);
  }
}

/* Results of a strip, of a channel that f32 is too narrow for, or with taps that nothing may stand for: 0 inf is no 0. */
HN_FN void strip_precisely(const depthwise_args *a, const float *w, i64 plane, int oy, int rows, int ox) {
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < 4 && ox + k < a->out[1]; k++)
      STORE(a->y, (plane * a->out[0] + oy + r) * a->out[1] + ox + k, relu(precisely(a, w, plane, oy + r, ox + k)));
}

HN_KERNEL_BOUNDS(depthwise_strip, depthwise_args, a, 256, 2) {
  const u32 i = blockIdx.x * 256 + threadIdx.x;
  if (i >= (u32)a.all) return;
  const u32 rest = i / (u32)a.quads, plane = rest / (u32)a.strips;
  const int ox = (int)(i % (u32)a.quads) * 4, oy = (int)(rest % (u32)a.strips) * (int)a.lines;
  const int high = (int)a.in[0], wide = (int)a.in[1], below = (int)a.out[0] - oy;
  const int rows = below < (int)a.lines ? below : (int)a.lines, lines = (rows - 1) * STEP + 3;
  const float *w = a.w + plane % (u32)a.channels * 13;
  const int left = ox * STEP - (int)a.pad[1], top = oy * STEP - (int)a.pad[0];
  /* Element left + 1 begins a four, and all of them are there. */
  const int fours = a.aligned && wide % 4 == 0 && a.pad[1] == 1 && left + 1 + 4 * STEP <= wide;
  float tap[9], sum[3][4], none = 0;
  HN_UNROLL
  for (int t = 0; t < 9; t++) tap[t] = w[t], none += tap[t] * 0;
  const int plain = w[12] == 1 && none == 0; /* else nothing may stand for what lies beside the picture */
  i64 to = ((i64)plane * a.out[0] + oy) * a.out[1] + ox;
  if (!plain) {
    strip_precisely(&a, w, plane, oy, rows, ox);
    return;
  }
  const float shift = w[9], last[2] = {w[10], w[11]};
  const int whole = a.aligned && a.out[1] % 4 == 0;
  HN_UNROLL
  for (int r = 0; r < 3; r++)
    HN_UNROLL
    for (int k = 0; k < 4; k++) sum[r][k] = shift;
  for (int base = 0; base < lines; base += AHEAD) {
    float v[AHEAD][SPAN];
    HN_UNROLL
    for (int l = 0; l < AHEAD; l++) {
      const int at = top + (base + l < lines ? base + l : lines - 1), iy = at < 0 ? 0 : at < high ? at : high - 1;
      load_line(&a, ((i64)plane * high + iy) * wide, left, wide, fours, v[l]);
    }
    HN_UNROLL
    for (int l = 0; l < AHEAD; l++) {
      const int line = base + l, iy = top + line;
      if (l % STEP == 0) { /* a window begins here */
        HN_UNROLL
        for (int k = 0; k < 4; k++) sum[sum_of(l, 0)][k] = shift;
      }
      if (iy >= 0 && iy < high) {
        HN_UNROLL
        for (int k = 0; k < SPAN; k++)
          if (left + k < 0 || left + k >= wide) v[l][k] = 0;
        HN_UNROLL
        for (int row = 0; row < 3; row++) {
          if ((l + row) % STEP) continue;
          HN_UNROLL
          for (int c = 0; c < 3; c++)
            HN_UNROLL
            for (int k = 0; k < 4; k++) sum[sum_of(l, row)][k] += v[l][k * STEP + c] * tap[row * 3 + c];
        }
      }
      if (l % STEP == 0 && line >= 2 && line < lines) {
        finish(&a, to, ox, whole, last, sum[sum_of(l, 2)]);
        to += a.out[1];
      }
    }
  }
}
#ifdef LINES
/* The four of a line, and what lies beside the warp's ends. */
HN_FN void load_own(const depthwise_args *a, i64 at, int there, i64 end, int end_there, float *v, float *beside) {
  v[0] = v[1] = v[2] = v[3] = *beside = 0;
  if (there) load4(a->x, at, v);
  if (there && end_there) *beside = LOAD(a->x, end);
}

HN_KERNEL_BOUNDS(depthwise_lines, depthwise_args, a, 128, 6) {
  const u32 i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
  if (i >= (u32)a.all) return; /* whole warps */
  const u32 rest = i / (u32)a.quads, plane = rest / (u32)a.strips;
  const int ox = (int)(i - rest * (u32)a.quads) * 4, oy = (int)(rest - plane * (u32)a.strips) * (int)a.lines;
  const int high = (int)a.in[0], wide = (int)a.in[1], below = (int)a.out[0] - oy;
  const int rows = below < (int)a.lines ? below : (int)a.lines, top = oy - (int)a.pad[0];
  const float *w = a.w + plane % (u32)a.channels * 13;
  float tap[9], sum[3][4], none = 0;
  HN_UNROLL
  for (int t = 0; t < 9; t++) tap[t] = w[t], none += tap[t] * 0;
  if (w[12] != 1 || none != 0) {
    strip_precisely(&a, w, plane, oy, rows, ox);
    return;
  }
  const float shift = w[9], last[2] = {w[10], w[11]};
  const int end_there = (lane == 0 && ox > 0) || (lane == 31 && ox + 4 < wide);
  i64 at = ((i64)plane * high + top) * wide + ox, to = ((i64)plane * a.out[0] + oy) * wide + ox;
  HN_UNROLL
  for (int r = 0; r < 3; r++)
    HN_UNROLL
    for (int k = 0; k < 4; k++) sum[r][k] = shift;
  for (int base = 0; base < rows + 2; base += AHEAD) {
    float v[AHEAD][4], beside[AHEAD];
    HN_UNROLL
    for (int l = 0; l < AHEAD; l++, at += wide) {
      const int iy = top + base + l;
      load_own(&a, at, iy >= 0 && iy < high && base + l < rows + 2, lane ? at + 4 : at - 1, end_there, v[l], &beside[l]);
    }
    HN_UNROLL
    for (int l = 0; l < AHEAD; l++) {
      const float before = hn_shfl(v[l][3], (int)(lane + 31) % 32), behind = hn_shfl(v[l][0], (int)(lane + 1) % 32);
      const float x[6] = {lane == 0 ? beside[l] : before, v[l][0], v[l][1], v[l][2], v[l][3],
                          lane == 31 ? beside[l] : behind};
      HN_UNROLL
      for (int k = 0; k < 4; k++) sum[l % 3][k] = shift; /* a window begins here */
      HN_UNROLL
      for (int row = 0; row < 3; row++)
        HN_UNROLL
        for (int c = 0; c < 3; c++)
          HN_UNROLL
          for (int k = 0; k < 4; k++) sum[sum_of(l, row)][k] += x[k + c] * tap[row * 3 + c];
      if (base + l < 2 || base + l >= rows + 2) continue;
      finish(&a, to, ox, 1, last, sum[sum_of(l, 2)]);
      to += wide;
    }
  }
}
#endif
#endif
