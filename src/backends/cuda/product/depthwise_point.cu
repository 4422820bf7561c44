/* Depthwise convolution with any kernel, stride and dilation: a thread makes HN_TW neighbouring output pixels of
 * HN_V channels, and HN_ROWS rows of the kernel are on their way together. The most threads and the shortest way to
 * the result: for small tensors, large kernels and dilations. */
#include "depthwise.cuh"

/* Columns that are loaded for a row of the kernel: all between the first and the last, or those that taps want. */
#if HN_DW == 1
#define HN_COLS HN_NC
#define HN_COL(p, kw) ((p) * HN_SW + (kw))
#define HN_X(c) (c)
#else
#define HN_COLS (HN_TW * HN_KW)
#define HN_COL(p, kw) ((p) * HN_KW + (kw))
#define HN_X(c) ((c) / HN_KW * HN_SW + (c) % HN_KW * HN_DW)
#endif

HN_KERNEL_BOUNDS(hn_depthwise_point, hn_depthwise_args, a, HN_THREADS, HN_BLOCKS) {
  HN_GRID_GO();
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.work) return;
  const int v = (int)(i % (u32)a.threads) * HN_V;
  i /= (u32)a.threads;
  const int x0 = (int)(i % (u32)a.tiles) * HN_TW, xin = x0 * HN_SW - a.pad_w;
  i /= (u32)a.tiles;
  const int y = (int)(i % (u32)a.out_h), n = (int)(i / (u32)a.out_h), yin = y * HN_SH - a.pad_h;
  const u8 *x = (const u8 *)a.x + (i64)n * a.x_image + (i64)v * HN_SIZE;
  float acc[HN_TW][HN_V], bias[HN_V];
  hn_weights(&a, HN_KH * HN_KW, v, bias);
  hn_begin(acc, bias);
  HN_GRID_WAIT();
#if HN_ROWS > 1
  HN_UNROLL
#endif
  for (int kh0 = 0; kh0 < HN_KH; kh0 += HN_ROWS) {
    hn_raw in[HN_ROWS][HN_COLS];
    HN_UNROLL for (int r = 0; r < HN_ROWS; r++) {
      const int yy = yin + (kh0 + r) * HN_DH;
      const bool inside = kh0 + r < HN_KH && (u32)yy < (u32)a.in_h;
      const u8 *row = x + (i64)yy * a.x_row;
      HN_UNROLL for (int c = 0; c < HN_COLS; c++) {
        const int xx = xin + HN_X(c);
        in[r][c] = hn_zero_raw();
        if (inside && (u32)xx < (u32)a.in_w) in[r][c] = hn_ld_raw(row + (i64)xx * a.x_pixel);
      }
    }
    HN_UNROLL for (int r = 0; r < HN_ROWS && kh0 + r < HN_KH; r++) {
      HN_UNROLL for (int kw = 0; kw < HN_KW; kw++) {
        float w[HN_V];
        hn_weights(&a, (kh0 + r) * HN_KW + kw, v, w);
        HN_UNROLL for (int p = 0; p < HN_TW; p++) {
          float f[HN_V];
          hn_widen(in[r][HN_COL(p, kw)], f);
          HN_UNROLL for (int k = 0; k < HN_V; k++) acc[p][k] += w[k] * f[k];
        }
      }
    }
  }
  HN_UNROLL for (int p = 0; p < HN_TW; p++)
    if (x0 + p < a.out_w) hn_depthwise_store(&a, n, y, x0 + p, v, acc[p]);
}
