/* Convolution of images: up to four input channels, of which f16 and bf16 tensors keep eight a pixel, or four. As products
 * of kernel taps times padded channels most of the work would be with zeros; here the four channels that count lie
 * side by side in shared memory, and what a row of the kernel reads for an output pixel is one stretch of memory.
 * Rows of the left operand are these stretches, at a distance of `stride` pixels: they overlap, and ldmatrix reads
 * them where they are. It wants multiples of 16 bytes, two pixels: where windows begin at odd pixels (an odd
 * stride), a second copy of the tile lies one pixel further.
 *
 * A block keeps the weights of HN_BN output channels as fragments in shared memory and walks over tiles of HN_WARPS
 * rows of 32 output pixels, a row a warp. The next tile's pixels are on their way while a tile is multiplied.
 *
 * Prefix: HN_T (f16, bf16), HN_KH, HN_WIN (pixels of a window, a multiple of 4), HN_SH, HN_SW, HN_BN (channels: 32,
 * 64), HN_WARPS, HN_PAIR and HN_PRODUCT (conversion and product of the type), the epilogue. */
#include "conv_image_args.h"
#include "prelude.cuh"

#define HN_THREADS (HN_WARPS * 32)
#define HN_STEPS (HN_KH * HN_WIN / 4) /* of 16 products: four pixels of four channels */
#define HN_ROWS ((HN_WARPS - 1) * HN_SH + HN_KH)
#define HN_COLS ((31 * HN_SW + HN_WIN + 1) / 2 * 2)
#define HN_PIXELS (HN_ROWS * HN_COLS)
#define HN_EACH ((HN_PIXELS + HN_THREADS - 1) / HN_THREADS)
#define HN_COPIES (HN_SW % 2 ? 2 : 1)
/* The second copy lies 64 bytes off in the banks, so that even and odd windows do not meet. */
#define HN_COPY ((HN_PIXELS * 8 + 127) / 128 * 128 + 64)
#define HN_TILE (HN_COPIES * HN_COPY / 16 * 16 + 16)
#define HN_WEIGHTS (HN_STEPS * HN_BN * 32)
#define HN_OUT (HN_BN + 8) /* elements from pixel to pixel of a warp's results */

typedef struct hn_pixel {
  u32 v[2];
} hn_pixel;

typedef struct hn_place {
  int n, y, x; /* image, first output row and column */
} hn_place;

HN_FN hn_place hn_place_of(const hn_conv_image_args *a, int tile) {
  hn_place p;
  p.x = tile % a->tiles_w * 32;
  tile /= a->tiles_w;
  p.y = tile % a->tiles_h * HN_WARPS;
  p.n = tile / a->tiles_h;
  return p;
}

/* This thread's pixels of a tile. */
HN_FN void hn_fetch(const hn_conv_image_args *a, int tile, hn_pixel in[HN_EACH]) {
  const hn_place p = hn_place_of(a, tile);
  const u16 *x = (const u16 *)a->x + (i64)p.n * a->x_image;
  const int y0 = p.y * HN_SH - a->pad_h, x0 = p.x * HN_SW - a->pad_w;
  HN_UNROLL for (int k = 0; k < HN_EACH; k++) {
    const int i = (int)threadIdx.x + k * HN_THREADS, yy = y0 + i / HN_COLS, xx = x0 + i % HN_COLS;
    in[k].v[0] = in[k].v[1] = 0;
    if (i < HN_PIXELS && (u32)yy < (u32)a->in_h && (u32)xx < (u32)a->in_w)
      in[k] = *(const hn_pixel *)(x + (i64)yy * a->x_row + (i64)xx * a->x_pixel);
  }
}

HN_FN void hn_put(u8 *tile, const hn_pixel in[HN_EACH]) {
  HN_UNROLL for (int k = 0; k < HN_EACH; k++) {
    const int i = (int)threadIdx.x + k * HN_THREADS;
    if (i >= HN_PIXELS) continue;
    *(hn_pixel *)(tile + i * 8) = in[k];
    if (HN_COPIES == 2 && i) *(hn_pixel *)(tile + HN_COPY + i * 8 - 8) = in[k];
  }
}

HN_KERNEL_BOUNDS(hn_conv_image, hn_conv_image_args, a, HN_THREADS, 1) {
  HN_DYNAMIC_SHARED(u8, shared);
  u8 *weights = shared, *tile = shared + HN_WEIGHTS;
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
  u16 *out = (u16 *)(tile + HN_TILE) + warp * 32 * HN_OUT;
  const int first = (int)blockIdx.y * HN_BN;
  const u8 *w = (const u8 *)a.w + (i64)blockIdx.y * HN_WEIGHTS;
  for (int i = (int)threadIdx.x * 16; i < HN_WEIGHTS; i += HN_THREADS * 16) *(hn_u4 *)(weights + i) = hn_ld16(w + i);
  HN_GRID_WAIT();
  HN_GRID_GO();
  hn_pixel in[HN_EACH];
  int at = (int)blockIdx.x;
  if (at < a.tiles) hn_fetch(&a, at, in);
  for (; at < a.tiles; at += (int)gridDim.x) {
    HN_SYNC();
    hn_put(tile, in);
    HN_SYNC();
    if (at + (int)gridDim.x < a.tiles) hn_fetch(&a, at + (int)gridDim.x, in);
    float acc[2][HN_BN / 8][4];
    HN_UNROLL for (int m = 0; m < 2; m++)
      HN_UNROLL for (int n = 0; n < HN_BN / 8; n++)
        HN_UNROLL for (int k = 0; k < 4; k++) acc[m][n][k] = 0;
    for (int kh = 0; kh < HN_KH; kh++) {
      HN_UNROLL for (int kk = 0; kk < HN_WIN / 4; kk++) {
        u32 left[2][4];
        HN_UNROLL for (int m = 0; m < 2; m++) {
          const int from = (m * 16 + lane % 16) * HN_SW + kk * 4 + lane / 16 * 2;
          const u8 *row = tile + ((warp * HN_SH + kh) * HN_COLS + from) * 8;
          if (HN_COPIES == 2 && from % 2) row += HN_COPY - 8;
          hn_ldmatrix4(left[m], row);
        }
        const u8 *right = weights + ((kh * (HN_WIN / 4) + kk) * (HN_BN / 16) * 32 + lane) * 16;
        HN_UNROLL for (int n = 0; n < HN_BN / 16; n++) {
          const hn_u4 b = *(const hn_u4 *)(right + n * 512);
          HN_UNROLL for (int m = 0; m < 2; m++) {
            HN_PRODUCT(acc[m][2 * n], left[m], b.v);
            HN_PRODUCT(acc[m][2 * n + 1], left[m], b.v + 2);
          }
        }
      }
    }
    const hn_place p = hn_place_of(&a, at);
    const int y = p.y + warp;
    const i64 line = (i64)p.n * a.y_image + (i64)y * a.y_row + (i64)p.x * a.y_pixel;
    HN_UNROLL for (int n = 0; n < HN_BN / 16; n++) {
      const int channel = first + n * 16 + 2 * t;
      float vectors[HN_EPILOGUE_VECTORS + 1][4];
      hn_epilogue_fragment_vectors(vectors, channel, &a.epilogue);
      HN_UNROLL for (int m = 0; m < 2; m++) {
        const int px = m * 16 + g, left = a.out_w - p.x - px;
        const int rows = y < a.out_h && first + n * 16 < a.vectors * 8 ? left > 8 ? 2 : left > 0 ? 1 : 0 : 0;
        float x[8];
        HN_UNROLL for (int k = 0; k < 4; k++) x[k] = acc[m][2 * n][k], x[k + 4] = acc[m][2 * n + 1][k];
        hn_epilogue_fragment(x, vectors, 0, channel, line + (i64)px * a.y_pixel + channel, 8 * (i64)a.y_pixel, rows,
                             &a.epilogue);
        u16 *to = out + px * HN_OUT + n * 16 + 2 * t;
        *(u32 *)to = HN_PAIR(x[0], x[1]);
        *(u32 *)(to + 8) = HN_PAIR(x[4], x[5]);
        *(u32 *)(to + 8 * HN_OUT) = HN_PAIR(x[2], x[3]);
        *(u32 *)(to + 8 * HN_OUT + 8) = HN_PAIR(x[6], x[7]);
      }
    }
    HN_SYNC_WARP();
    HN_UNROLL for (int k = 0; k < HN_BN / 8; k++) {
      const int i = lane + k * 32, px = i / (HN_BN / 8), v = i % (HN_BN / 8);
      if (y < a.out_h && p.x + px < a.out_w && first / 8 + v < a.vectors)
        hn_st16((u16 *)a.y + line + (i64)px * a.y_pixel + first + v * 8, *(const hn_u4 *)(out + px * HN_OUT + v * 8));
    }
    HN_SYNC_WARP();
  }
}
