/* Convolution of images, as in conv_image.cu, by products of warpgroups: their left operand comes straight from the
 * tile in shared memory. Eight rows of 16 bytes, one behind the other, make a core matrix; rows are windows that begin
 * two pixels (of four channels, 16 bytes) apart, and the next eight products of K lie 16 bytes further. So one
 * descriptor names 64 overlapping windows, and nothing is copied. Windows one pixel apart (HN_SW 1) are two such
 * operands, of even and of odd pixels; those of odd ones lie in a copy of the tile one pixel further.
 *
 * A block keeps the weights of HN_BN output channels in shared memory and walks over tiles of HN_GROUPS rows of
 * HN_HALVES * 64 output pixels, a row a warpgroup. The next tiles' pixels are on their way while a tile is multiplied.
 *
 * Prefix: HN_T (f16, bf16), HN_KH, HN_WIN (pixels of a window, a multiple of 4), HN_SH, HN_SW (1, 2), HN_BN (channels:
 * 32, 64), HN_GROUPS, HN_HALVES (operands of a warpgroup; two for HN_SW 1), HN_BUFFERS (tiles in shared memory),
 * HN_RESIDENT (blocks of a multiprocessor), HN_PIXEL (elements of a pixel in memory), HN_PAIR (conversion of the type),
 * the epilogue. */
#include "conv_image_args.h"
#include "hopper.cuh"

#define HN_WARPS (HN_GROUPS * 4)
#define HN_THREADS (HN_WARPS * 32)
#define HN_STEPS (HN_KH * HN_WIN / 4) /* of 16 products: four pixels of four channels */
#define HN_WIDE (HN_HALVES * 64)
#define HN_ROWS ((HN_GROUPS - 1) * HN_SH + HN_KH)
#define HN_COLS (((HN_WIDE - 1) * HN_SW + HN_WIN + 1) / 2 * 2)
#define HN_COPIES (HN_SW == 1 ? 2 : 1)
#define HN_COPY (HN_ROWS * HN_COLS * 8)
#define HN_TILE (HN_COPIES * HN_COPY)
#define HN_WEIGHTS (HN_STEPS * HN_BN * 32)
#define HN_OUT (HN_BN + 8) /* elements from pixel to pixel of a warp's results */

#define HN_MMA_f16 "f16.f16"
#define HN_MMA_bf16 "bf16.bf16"
HN_PASTE(HN_DEFINE_WGMMA_, HN_BN)(wgmma, HN_PASTE(HN_MMA_, HN_T))

typedef struct hn_place {
  int n, y, x; /* image, first output row and column */
} hn_place;

HN_FN hn_place hn_place_of(const hn_conv_image_args *a, int tile) {
  hn_place p;
  p.x = tile % a->tiles_w * HN_WIDE;
  tile /= a->tiles_w;
  p.y = tile % a->tiles_h * HN_GROUPS;
  p.n = tile / a->tiles_h;
  return p;
}

/* Core matrices of eight rows of 16 bytes, `along_k` and `along_rows` bytes apart. Adding bytes / 16 moves it. */
HN_FN u64 hn_cores(u32 address, u32 along_k, u32 along_rows) {
  return (u64)(along_rows >> 4) << 32 | (along_k >> 4 << 16 | address >> 4);
}

/* Four channels; outside of the image zeros. */
HN_FN void hn_pixel_async(u32 to, const void *from, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

/* A warp brings whole rows of the tile. */
HN_FN void hn_fetch(const hn_conv_image_args *a, int tile, u32 tiles, int turn) {
  if (tile < a->tiles) {
    const hn_place p = hn_place_of(a, tile);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, x0 = p.x * HN_SW - a->pad_w + lane;
    const u16 *x = (const u16 *)a->x + (i64)p.n * a->x_image + (i64)x0 * HN_PIXEL;
    for (int row = warp; row < HN_ROWS; row += HN_WARPS) {
      const int y = p.y * HN_SH - a->pad_h + row;
      const u32 width = (u32)y < (u32)a->in_h ? (u32)a->in_w : 0, to = tiles + (u32)(turn * HN_TILE + (row * HN_COLS + lane) * 8);
      const u16 *from = x + (i64)y * a->x_row;
      HN_UNROLL for (int k = 0; k < HN_COLS; k += 32) {
        const u32 bytes = (u32)(x0 + k) < width ? 8 : 0;
        if (k + 32 > HN_COLS && k + lane >= HN_COLS) continue;
        hn_pixel_async(to + (u32)k * 8, from + k * HN_PIXEL, bytes);
        if (HN_COPIES == 2 && (row > 0 || k + lane > 0)) hn_pixel_async(to + HN_COPY + (u32)k * 8 - 8, from + k * HN_PIXEL, bytes);
      }
    }
  }
  asm volatile("cp.async.commit_group;" : : : "memory");
}

HN_KERNEL_BOUNDS(hn_conv_image, hn_conv_image_args, a, HN_THREADS, HN_RESIDENT) {
  HN_DYNAMIC_SHARED(u8, shared);
  const u32 weights = hn_shared_address(shared), tiles = weights + HN_WEIGHTS;
  const int group = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4,
            t = lane % 4;
  /* The warp's results: 16 pixels of each operand. */
  u16 *out = (u16 *)(shared + HN_WEIGHTS + HN_BUFFERS * HN_TILE) + warp * HN_HALVES * 16 * HN_OUT;
  const int first = (int)blockIdx.y * HN_BN, step = (int)gridDim.x;
  const u8 *w = (const u8 *)a.w + (i64)blockIdx.y * HN_WEIGHTS;
  for (int i = (int)threadIdx.x * 16; i < HN_WEIGHTS; i += HN_THREADS * 16) hn_cp_async16_near(weights + (u32)i, w + i, 16);
  HN_GRID_WAIT();
  HN_GRID_GO();
  int at = (int)blockIdx.x, turn = 0;
  for (int k = 0; k < HN_BUFFERS - 1; k++) hn_fetch(&a, at + k * step, tiles, k);
  for (; at < a.tiles; at += step, turn = turn + 1 < HN_BUFFERS ? turn + 1 : 0) {
    asm volatile("cp.async.wait_group %0;" : : "n"(HN_BUFFERS - 2) : "memory");
    hn_async_fence();
    HN_SYNC(); /* the tile is there, and nobody reads the one before it any more */
    float acc[HN_HALVES][HN_BN / 2];
    const u64 right = hn_cores(weights, HN_BN * 16, 128),
              left = hn_cores(tiles + (u32)(turn * HN_TILE + group * HN_SH * HN_COLS * 8), 16, 128);
    hn_wgmma_fence();
    HN_UNROLL for (int k = 0; k < HN_STEPS; k++)
      HN_UNROLL for (int h = 0; h < HN_HALVES; h++)
        wgmma(acc[h], left + (u32)((k / (HN_WIN / 4) * HN_COLS + k % (HN_WIN / 4) * 4) * 8 + h * (HN_COPIES == 2 ? HN_COPY : 1024)) / 16,
              right + (u32)(k * HN_BN * 2), k > 0);
    hn_wgmma_commit();
    hn_fetch(&a, at + (HN_BUFFERS - 1) * step, tiles, turn > 0 ? turn - 1 : HN_BUFFERS - 1);
    const hn_place p = hn_place_of(&a, at);
    const int y = p.y + group, width = y < a.out_h ? a.out_w - p.x : 0; /* of pixels that exist */
    const i64 line = (i64)p.n * a.y_image + (i64)y * a.y_row + (i64)p.x * a.y_pixel;
    /* The warp's 16 windows of an operand begin at this pixel, so many pixels apart. */
    const int apart = HN_COPIES, begin = warp % 4 * 16 * apart, next = HN_COPIES == 2 ? 1 : 64; /* of the other */
    HN_WGMMA_WAIT(0);
    HN_UNROLL for (int n = 0; n < HN_BN / 16; n++) {
      const int channel = first + n * 16 + 2 * t;
      float vectors[HN_EPILOGUE_VECTORS + 1][4];
      hn_epilogue_fragment_vectors(vectors, channel, &a.epilogue);
      HN_UNROLL for (int h = 0; h < HN_HALVES; h++) {
        const int px = begin + h * next + g * apart;
        const int live = first + n * 16 >= a.vectors * 8 ? 0 : px + 8 * apart < width ? 2 : px < width;
        float x[8];
        HN_UNROLL for (int k = 0; k < 4; k++) x[k] = acc[h][8 * n + k], x[k + 4] = acc[h][8 * n + 4 + k];
        hn_epilogue_fragment(x, vectors, 0, channel, line + (i64)px * a.y_pixel + channel,
                             8 * (i64)apart * a.y_pixel, live, &a.epilogue);
        u16 *to = out + (h * 16 + g) * HN_OUT + n * 16 + 2 * t;
        *(u32 *)to = HN_PAIR(x[0], x[1]);
        *(u32 *)(to + 8) = HN_PAIR(x[4], x[5]);
        *(u32 *)(to + 8 * HN_OUT) = HN_PAIR(x[2], x[3]);
        *(u32 *)(to + 8 * HN_OUT + 8) = HN_PAIR(x[6], x[7]);
      }
    }
    HN_SYNC_WARP();
    const int one = lane / (HN_BN / 8), v = lane % (HN_BN / 8), room = first / 8 + v < a.vectors ? width - begin : 0;
    u16 *y0 = (u16 *)a.y + line + (i64)(begin + one * apart) * a.y_pixel + first + v * 8;
    HN_UNROLL for (int h = 0; h < HN_HALVES; h++)
      HN_UNROLL for (int k = 0; k < 16; k += 256 / HN_BN)
        if ((one + k) * apart + h * next < room)
          hn_st16(y0 + (i64)(k * apart + h * next) * a.y_pixel, *(const hn_u4 *)(out + (h * 16 + one + k) * HN_OUT + v * 8));
    HN_SYNC_WARP();
  }
}
