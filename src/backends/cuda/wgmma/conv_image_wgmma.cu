/* Convolution of images, as in conv_image.cu, by products of warpgroups: output channels by pixels. The weights of 64
 * rows stay in registers; the other operand comes straight from the tile in shared memory. Eight rows of 16 bytes, one
 * behind the other, make a core matrix; its rows are windows that begin two pixels (of four channels, 16 bytes) apart,
 * and the next eight products of K lie 16 bytes further. So one descriptor names HN_N overlapping windows, and nothing
 * is copied. Windows one pixel apart (HN_SW 1) are two such operands, of even and of odd pixels; those of odd ones lie
 * in a copy of the tile one pixel further.
 *
 * Fewer channels than 64: the rows of the product are the channels of HN_OUT_ROWS output rows, whose weights lie as many
 * rows of the kernel further.
 *
 * Weights beyond the kernel are zeros, which a pixel that is infinite or NaN makes NaN of: outputs beside the windows
 * that hold such a pixel may be NaN, as with Winograd's.
 *
 * A block walks over tiles of HN_GROUPS * HN_OUT_ROWS rows of HN_PARTS * HN_N output pixels; a warpgroup makes
 * HN_OUT_ROWS of them. The next tiles' pixels are on their way while a tile is multiplied.
 *
 * Prefix: HN_T (f16, bf16), HN_KH, HN_WIN (pixels of a window, a multiple of 4), HN_SH, HN_SW (1, 2), HN_BN (channels:
 * 32, 64), HN_GROUPS, HN_N (pixels of an operand), HN_PARTS (operands of a row; two for HN_SW 1), HN_BUFFERS (tiles in
 * shared memory), HN_RESIDENT (blocks of a multiprocessor), HN_PIXEL (elements of a pixel in memory), HN_PAIR
 * (conversion of the type), hn_wgmma_first and hn_wgmma_add (products of 64 x HN_N x 16), the epilogue. */
#include "conv_image_args.h"
#include "hopper.cuh"

#define HN_WARPS (HN_GROUPS * 4)
#define HN_THREADS (HN_WARPS * 32)
#define HN_OUT_ROWS (64 / HN_BN)
#define HN_K_ROWS (HN_KH + (HN_OUT_ROWS - 1) * HN_SH) /* of the image, for the rows of a warpgroup */
#define HN_STEPS (HN_K_ROWS * HN_WIN / 4)             /* of 16 products: four pixels of four channels */
#define HN_WIDE (HN_PARTS * HN_N)
#define HN_ROWS ((HN_GROUPS * HN_OUT_ROWS - 1) * HN_SH + HN_KH)
#define HN_COLS (((HN_WIDE - 1) * HN_SW + HN_WIN + 1) / 2 * 2)
#define HN_COPIES (HN_SW == 1 ? 2 : 1)
#define HN_COPY (HN_ROWS * HN_COLS * 8)
#define HN_TILE (HN_COPIES * HN_COPY)
#define HN_PITCH 144 /* bytes from pixel to pixel of results: 64 channels, and rows of eight in different banks */

typedef struct hn_place {
  int n, y, x; /* image, first output row and column */
} hn_place;

HN_FN hn_place hn_place_of(const hn_conv_image_args *a, int tile) {
  hn_place p;
  p.x = tile % a->tiles_w * HN_WIDE;
  tile /= a->tiles_w;
  p.y = tile % a->tiles_h * (HN_GROUPS * HN_OUT_ROWS);
  p.n = tile / a->tiles_h;
  return p;
}

/* Core matrices of eight rows of 16 bytes, the next eight of K 16 bytes and the next eight windows 128 further. Adding
 * bytes / 16 moves it. */
HN_FN u64 hn_windows(u32 address) { return (u64)(128 >> 4) << 32 | (1 << 16 | address >> 4); }

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

/* Four (two) 8 x 8 matrices, transposed on their way: lane l names row l % 8 of matrix l / 8. */
HN_FN void hn_store_transposed4(u32 row, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};"
               : : "r"(row), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
HN_FN void hn_store_transposed2(u32 row, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" : : "r"(row), "r"(a), "r"(b) : "memory");
}

HN_KERNEL_BOUNDS(hn_conv_image, hn_conv_image_args, a, HN_THREADS, HN_RESIDENT) {
  HN_DYNAMIC_SHARED(u8, shared);
  const u32 tiles = hn_shared_address(shared);
  const int thread = (int)threadIdx.x % 128, group = (int)threadIdx.x / 128, warp = thread / 32, lane = thread % 32;
  const u8 *results = shared + HN_BUFFERS * HN_TILE + group * HN_WIDE * HN_PITCH;
  const u32 out = hn_shared_address(results) + (u32)((lane / 16 * 8 + lane % 8) * HN_PITCH + warp * 32 + lane / 8 % 2 * 16);
  const int first = (int)blockIdx.y * HN_BN, channel = first + warp * 16 % HN_BN + lane / 4, step = (int)gridDim.x;
  hn_u4 weights[HN_STEPS];
  HN_UNROLL for (int k = 0; k < HN_STEPS; k++)
    weights[k] = hn_ld16((const hn_u4 *)a.w + ((int)blockIdx.y * HN_STEPS + k) * 128 + thread);
  HN_GRID_WAIT(); /* also for the bias, which may have been computed */
  HN_GRID_GO();
  float pairs[HN_EPILOGUE_VECTORS + 1][4], vectors[HN_EPILOGUE_VECTORS + 1][4];
  hn_epilogue_fragment_vectors(pairs, channel / 2 * 2, &a.epilogue);
  HN_UNROLL for (int k = 0; k < HN_EPILOGUE_VECTORS; k++) {
    vectors[k][0] = vectors[k][1] = channel % 2 ? pairs[k][1] : pairs[k][0];
    vectors[k][2] = vectors[k][3] = channel % 2 ? pairs[k][3] : pairs[k][2];
  }
  int at = (int)blockIdx.x, turn = 0;
  for (int k = 0; k < HN_BUFFERS - 1; k++) hn_fetch(&a, at + k * step, tiles, k);
  for (; at < a.tiles; at += step, turn = turn + 1 < HN_BUFFERS ? turn + 1 : 0) {
    asm volatile("cp.async.wait_group %0;" : : "n"(HN_BUFFERS - 2) : "memory");
    hn_async_fence();
    HN_SYNC(); /* the tile is there, and nobody reads the one before it any more, or its results */
    hn_fetch(&a, at + (HN_BUFFERS - 1) * step, tiles, turn > 0 ? turn - 1 : HN_BUFFERS - 1);
    const u64 windows = hn_windows(tiles + (u32)(turn * HN_TILE + group * HN_OUT_ROWS * HN_SH * HN_COLS * 8));
    HN_UNROLL for (int part = 0; part < HN_PARTS; part++) {
      float acc[HN_N / 2];
      hn_wgmma_fence();
      HN_UNROLL for (int k = 0; k < HN_STEPS; k++) {
        const int from = (k / (HN_WIN / 4) * HN_COLS + k % (HN_WIN / 4) * 4) * 8 + part * (HN_COPIES == 2 ? HN_COPY : HN_N * 16);
        if (k == 0) hn_wgmma_first(acc, weights[k].v, windows + (u32)from / 16);
        else hn_wgmma_add(acc, weights[k].v, windows + (u32)from / 16);
      }
      hn_wgmma_commit();
      HN_WGMMA_WAIT(0);
      u32 pair[HN_N / 4]; /* of pixels: of this thread's channel, then of that eight further */
      HN_UNROLL for (int k = 0; k < HN_N / 8; k++) {
        /* A fragment of the epilogue's has two channels side by side, of which this thread has one. */
        float x[8] = {acc[4 * k], 0, acc[4 * k + 1], 0, acc[4 * k + 2], 0, acc[4 * k + 3], 0};
        hn_epilogue_fragment(x, vectors, 0, channel, 0, 0, 0, &a.epilogue);
        pair[2 * k] = HN_PAIR(x[0], x[2]), pair[2 * k + 1] = HN_PAIR(x[4], x[6]);
      }
      const u32 to = out + (u32)(part * HN_N * HN_PITCH);
      HN_UNROLL for (int k = 0; k + 4 <= HN_N / 4; k += 4)
        hn_store_transposed4(to + (u32)(k * 4 * HN_PITCH), pair[k], pair[k + 1], pair[k + 2], pair[k + 3]);
      if (HN_N % 16) hn_store_transposed2(to + (u32)(HN_N / 16 * 16 * HN_PITCH), pair[HN_N / 4 - 2], pair[HN_N / 4 - 1]);
    }
    hn_sync_some(1 + (u32)group, 128);
    /* A thread takes eight channels of every 16th pixel. */
    const hn_place p = hn_place_of(&a, at);
    const int v = thread % 8, y = p.y + group * HN_OUT_ROWS + v / (HN_BN / 8), c = first / 8 + v % (HN_BN / 8);
    const int width = y < a.out_h && c < a.vectors ? a.out_w - p.x : 0;
    u16 *line = (u16 *)a.y + (i64)p.n * a.y_image + (i64)y * a.y_row + (i64)p.x * a.y_pixel + c * 8;
    HN_UNROLL for (int k = 0; k < HN_WIDE; k += 16) {
      const int px = k + thread / 8, row = HN_COPIES == 2 ? px % 2 * HN_N + px / 2 : px;
      if ((k + 16 <= HN_WIDE || px < HN_WIDE) && px < width)
        hn_st16(line + (i64)px * a.y_pixel, *(const hn_u4 *)(results + row * HN_PITCH + v * 16));
    }
  }
}
