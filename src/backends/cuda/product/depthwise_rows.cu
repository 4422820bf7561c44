/* Depthwise convolution, dilation 1: a thread walks down a strip of output rows. It keeps the weights of its
 * channels and the sums of the output rows that the current input row belongs to in registers, so that each
 * input row is read once a strip; the next row is on its way while the current one is used. */
#include "depthwise.cuh"

HN_FN void hn_fetch(hn_raw *to, const u8 *row, int y, int x, const hn_depthwise_args *a) {
  const bool inside = (u32)y < (u32)a->in_h;
  const u8 *p = row + (i64)y * a->x_row;
  HN_UNROLL for (int c = 0; c < HN_NC; c++) {
    to[c] = hn_zero_raw();
    if (inside && (u32)(x + c) < (u32)a->in_w) to[c] = hn_ld_raw(p + (i64)(x + c) * a->x_pixel);
  }
}

HN_KERNEL_BOUNDS(hn_depthwise_rows, hn_depthwise_args, a, HN_THREADS, HN_BLOCKS) {
  HN_GRID_GO();
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.work) return;
  const int v = (int)(i % (u32)a.threads) * HN_V;
  i /= (u32)a.threads;
  const int tile = (int)(i % (u32)a.tiles);
  i /= (u32)a.tiles;
  const int y0 = (int)(i % (u32)a.strips) * a.rows;
  const int n = (int)(i / (u32)a.strips);
  const int x0 = tile * HN_TW, xin = x0 * HN_SW - a.pad_w, yin = y0 * HN_SH - a.pad_h;
  const int left = a.out_h - y0, steps = (left < a.rows ? left : a.rows) + HN_NA - 1;
  const u8 *x = (const u8 *)a.x + (i64)n * a.x_image + (i64)v * HN_SIZE;
  float w[HN_KH * HN_KW][HN_V], bias[HN_V], acc[HN_NA][HN_TW][HN_V];
  hn_raw cur[HN_NC], next[HN_NC];
  HN_UNROLL for (int t = 0; t < HN_KH * HN_KW; t++) hn_weights(&a, t, v, w[t]);
  hn_weights(&a, HN_KH * HN_KW, v, bias);
  HN_GRID_WAIT();
  hn_fetch(next, x, yin, xin, &a);
  HN_UNROLL for (int j = 0; j < HN_NA; j++) hn_begin(acc[j], bias);
  for (int t0 = 0; t0 < steps; t0 += HN_NA) {
    /* Unrolled over the rows of sums, so that their places are known. */
    HN_UNROLL for (int u = 0; u < HN_NA; u++) {
      if (t0 + u >= steps) break;
      HN_UNROLL for (int s = 0; s < HN_SH; s++) {
        HN_UNROLL for (int c = 0; c < HN_NC; c++) cur[c] = next[c];
        hn_fetch(next, x, yin + (t0 + u) * HN_SH + s + 1, xin, &a);
        HN_UNROLL for (int c = 0; c < HN_NC; c++) hn_taps(acc, w, u, s, c, cur[c]);
      }
      const int o = t0 + u - (HN_NA - 1), done = (u + 1) % HN_NA;
      HN_UNROLL for (int p = 0; p < HN_TW; p++)
        if (o >= 0 && x0 + p < a.out_w) hn_depthwise_store(&a, n, y0 + o, x0 + p, v, acc[done][p]);
      hn_begin(acc[done], bias);
    }
  }
}
