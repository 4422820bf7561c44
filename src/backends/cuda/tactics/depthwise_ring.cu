/* Depthwise convolution, dilation 1, for tensors that fill the device: a block takes a slice of channels and walks
 * down a strip of output rows; input rows pass through a ring in shared memory, filled HN_STAGES - 1 rows ahead,
 * so that the bytes on their way need no registers. Sums are kept as in depthwise_rows. */
#include "depthwise.cuh"

enum { HN_CHUNKS = 8 }; /* 16-byte pieces of a row that a thread fetches, at most */

HN_KERNEL_BOUNDS(hn_depthwise_ring, hn_depthwise_args, a, HN_THREADS, HN_BLOCKS) {
  HN_DYNAMIC_SHARED(hn_u4, ring);
  const int cv = a.block_vectors, bt = a.block_tiles, bi = a.block_images;
  const int slices = (a.vectors + cv - 1) / cv, parts = (a.tiles + bt - 1) / bt;
  u32 b = blockIdx.x;
  const int v0 = (int)(b % (u32)slices) * cv;
  b /= (u32)slices;
  const int tile0 = (int)(b % (u32)parts) * bt;
  b /= (u32)parts;
  const int y0 = (int)(b % (u32)a.strips) * a.rows, n0 = (int)(b / (u32)a.strips) * bi;
  const int left = a.out_h - y0, made = left < a.rows ? left : a.rows, steps = made + HN_NA - 1;
  const int inputs = (made - 1) * HN_SH + HN_KH, yin = y0 * HN_SH - a.pad_h, xin = tile0 * HN_TW * HN_SW - a.pad_w;
  const int width = (bt * HN_TW - 1) * HN_SW + HN_KW, pieces = bi * width * cv;
  /* What this thread fetches of each row. */
  i32 from[HN_CHUNKS];
  const u8 *base = (const u8 *)a.x + (i64)n0 * a.x_image + (i64)yin * a.x_row;
  HN_UNROLL for (int c = 0; c < HN_CHUNKS; c++) {
    const int e = (int)threadIdx.x + c * (int)blockDim.x, vec = e % cv + v0, px = e / cv % width + xin, im = e / cv / width;
    from[c] = -1;
    if (e < pieces && vec < a.vectors && (u32)px < (u32)a.in_w && n0 + im < a.batch)
      from[c] = (i32)(im * a.x_image) + px * a.x_pixel + vec * 16;
  }
  const int tid = (int)threadIdx.x, mv = tid % (cv * HN_SPLIT), mt = tid / (cv * HN_SPLIT) % bt, mi = tid / (cv * HN_SPLIT) / bt;
  const int v = (v0 * HN_SPLIT + mv) * HN_V, x0 = (tile0 + mt) * HN_TW, n = n0 + mi;
  const bool works = mi < bi && v0 * HN_SPLIT + mv < a.threads && n < a.batch;
  const hn_raw *mine = (const hn_raw *)ring + (works ? (mi * width + mt * HN_TW * HN_SW) * cv * HN_SPLIT + mv : 0);
#define HN_FILL(r)                                                                                           \
  do {                                                                                                       \
    if ((r) < inputs) {                                                                                      \
      const bool in = (u32)(yin + (r)) < (u32)a.in_h;                                                        \
      hn_u4 *slot = ring + (r) % HN_STAGES * pieces;                                                         \
      const u8 *row = base + (i64)(r) * a.x_row;                                                             \
      HN_UNROLL for (int c = 0; c < HN_CHUNKS; c++) {                                                        \
        const int e = tid + c * (int)blockDim.x;                                                             \
        const bool ok = in && from[c] >= 0;                                                                  \
        if (e < pieces) hn_cp_async16(slot + e, ok ? row + from[c] : (const u8 *)a.x, ok ? 16 : 0);          \
      }                                                                                                      \
    }                                                                                                        \
    hn_cp_async_commit();                                                                                    \
  } while (0)
  for (int r = 0; r < HN_STAGES - 1; r++) HN_FILL(r);
  float w[HN_KH * HN_KW][HN_V], acc[HN_NA][HN_TW][HN_V];
  HN_UNROLL for (int t = 0; t < HN_KH * HN_KW; t++) hn_weights(&a, t, works ? v : 0, w[t]);
  HN_UNROLL for (int j = 0; j < HN_NA; j++) hn_clear(acc[j]);
  for (int t0 = 0; t0 < steps; t0 += HN_NA) {
    HN_UNROLL for (int u = 0; u < HN_NA; u++) {
      if (t0 + u >= steps) break;
      HN_UNROLL for (int s = 0; s < HN_SH; s++) {
        const int r = (t0 + u) * HN_SH + s;
        if (r >= inputs) break;
        HN_CP_ASYNC_WAIT(HN_STAGES - 2);
        HN_SYNC();
        HN_FILL(r + HN_STAGES - 1);
        const hn_raw *row = mine + r % HN_STAGES * pieces * HN_SPLIT;
        HN_UNROLL for (int c = 0; c < HN_NC; c++) hn_taps(acc, w, u, s, c, row[c * cv * HN_SPLIT]);
      }
      const int o = t0 + u - (HN_NA - 1), done = (u + 1) % HN_NA;
      HN_UNROLL for (int p = 0; p < HN_TW; p++)
        if (works && o >= 0 && x0 + p < a.out_w) hn_depthwise_store(&a, n, y0 + o, x0 + p, v, acc[done][p]);
      hn_clear(acc[done]);
    }
  }
}
