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
 * (conversion of the type), hn_wgmma_first and hn_wgmma_add (products of 64 x HN_N x 32 bytes), the epilogue.
 *
 * Of codes, HN_T u8 or i8 and HN_CODE in place of the epilogue (codes.cuh): a pixel has eight channels in the tile, of
 * which the upper four, whatever they are, are multiplied with zeros; what lies outside of the image is a.outside. Rows of
 * the weights are exchanged so that a thread's two are neighbouring channels, and two codes are an element of a matrix
 * (turned_codes.cuh). HN_N is a multiple of 16 then. */
#include "conv_image_args.h"
#include "hopper.cuh"
#include "sums.cuh"
#include "transposed.cuh"
#ifdef HN_CODE
#include "codes.cuh"
typedef u8 hn_element;
#define HN_PITCH 80 /* bytes from pixel to pixel of results: 64 channels, and rows of eight in different banks */
#else
typedef u16 hn_element;
#define HN_PITCH 144
#endif

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
#define HN_VECTOR (int)(16 / sizeof(hn_element)) /* channels of 16 bytes */
#define HN_VECTORS (64 / HN_VECTOR)              /* of a pixel's results */

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

/* Four channels; outside of the image zeros, or `outside`. */
HN_FN void hn_pixel_async(u32 to, const void *from, u32 there, u32 outside) {
#ifdef HN_CODE
  if (there) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to), "l"(from) : "memory");
  else asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(outside) : "memory");
#else
  (void)outside;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
#endif
}

/* A warp brings whole rows of the tile. */
HN_FN void hn_fetch(const hn_conv_image_args *a, int tile, u32 tiles, int turn) {
  if (tile < a->tiles) {
    const hn_place p = hn_place_of(a, tile);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, x0 = p.x * HN_SW - a->pad_w + lane;
    const hn_element *x = (const hn_element *)a->x + (i64)p.n * a->x_image + (i64)x0 * HN_PIXEL;
    for (int row = warp; row < HN_ROWS; row += HN_WARPS) {
      const int y = p.y * HN_SH - a->pad_h + row;
      const u32 width = (u32)y < (u32)a->in_h ? (u32)a->in_w : 0, to = tiles + (u32)(turn * HN_TILE + (row * HN_COLS + lane) * 8);
      const hn_element *from = x + (i64)y * a->x_row;
      HN_UNROLL for (int k = 0; k < HN_COLS; k += 32) {
        const u32 there = (u32)(x0 + k) < width;
        if (k + 32 > HN_COLS && k + lane >= HN_COLS) continue;
        hn_pixel_async(to + (u32)k * 8, from + k * HN_PIXEL, there, a->outside);
        if (HN_COPIES == 2 && (row > 0 || k + lane > 0))
          hn_pixel_async(to + HN_COPY + (u32)k * 8 - 8, from + k * HN_PIXEL, there, a->outside);
      }
    }
  }
  asm volatile("cp.async.commit_group;" : : : "memory");
}

#ifdef HN_CODE
/* Bias and scale of this thread's two channels, and which of them are no padding. */
typedef struct ending {
  i32 bias[2];
  float scale[2];
  u32 there;
  hn_codes_short way;
} ending;
HN_FN i32 channel_of(int first, int warp, int lane) { return first + warp * 16 % HN_BN + lane / 4 * 2; }
HN_FN u32 place_of(int warp, int lane) { return (u32)(lane * HN_PITCH + warp * 16); }
HN_FN void ending_of(const hn_conv_image_args *a, i32 channel, ending *e) {
  const i32 *bias = (const i32 *)a->codes.bias + channel, left = a->channels - channel;
  const float *scale = (const float *)a->codes.scale + channel;
  e->bias[0] = bias[0], e->bias[1] = bias[1], e->scale[0] = scale[0], e->scale[1] = scale[1];
  e->there = left > 1 ? 0xffffffffu : left == 1 ? 0x00ff00ffu : 0;
  e->way = hn_codes_short_of(&a->codes);
}
HN_FN void finish_way(const hn_conv_image_args *a, const i32 *acc, const ending *e, u32 to, u32 way) {
  const float scale[4] = {e->scale[0], e->scale[1], e->scale[0], e->scale[1]};
  HN_UNROLL for (u32 k = 0; k < HN_N / 8; k += 4) {
    const u32 count = HN_N / 8 - k >= 4 ? 4 : HN_N / 8 - k;
    u32 v[4];
    HN_UNROLL for (u32 i = 0; i < 4; i++) {
      const i32 *p = acc + (k + i) * 4;
      if (i >= count) continue;
      const i32 sum[4] = {p[0] + e->bias[0], p[2] + e->bias[1], p[1] + e->bias[0], p[3] + e->bias[1]};
      v[i] = hn_requantise4(sum, scale, 0, 0, way, &e->way, &a->codes) & e->there;
    }
    store_transposed(to + k * 8 * HN_PITCH, v, count);
  }
}
HN_FN void finish(const hn_conv_image_args *a, const i32 *acc, ending *e, u32 to, i32 channel) {
  (void)channel;
  if (e->way.way == HN_CODES_SHORT) finish_way(a, acc, e, to, HN_CODES_SHORT);
  else finish_way(a, acc, e, to, HN_CODES_LONG);
}
#else
typedef struct ending {
  float vectors[HN_EPILOGUE_VECTORS + 1][4];
} ending;
HN_FN i32 channel_of(int first, int warp, int lane) { return first + warp * 16 % HN_BN + lane / 4; }
HN_FN u32 place_of(int warp, int lane) { return (u32)((lane / 16 * 8 + lane % 8) * HN_PITCH + warp * 32 + lane / 8 % 2 * 16); }
HN_FN void ending_of(const hn_conv_image_args *a, i32 channel, ending *e) {
  float pairs[HN_EPILOGUE_VECTORS + 1][4];
  hn_epilogue_fragment_vectors(pairs, channel / 2 * 2, &a->epilogue);
  HN_UNROLL for (int k = 0; k < HN_EPILOGUE_VECTORS; k++) {
    e->vectors[k][0] = e->vectors[k][1] = channel % 2 ? pairs[k][1] : pairs[k][0];
    e->vectors[k][2] = e->vectors[k][3] = channel % 2 ? pairs[k][3] : pairs[k][2];
  }
}
HN_FN void finish(const hn_conv_image_args *a, const float *acc, ending *e, u32 to, i32 channel) {
  u32 pair[HN_N / 4]; /* of pixels: of this thread's channel, then of that eight further */
  HN_UNROLL for (int k = 0; k < HN_N / 8; k++) {
    /* A fragment of the epilogue's has two channels side by side, of which this thread has one. */
    float x[8] = {acc[4 * k], 0, acc[4 * k + 1], 0, acc[4 * k + 2], 0, acc[4 * k + 3], 0};
    hn_epilogue_fragment(x, e->vectors, 0, channel, 0, 0, 0, &a->epilogue);
    pair[2 * k] = HN_PAIR(x[0], x[2]), pair[2 * k + 1] = HN_PAIR(x[4], x[6]);
  }
  HN_UNROLL for (int k = 0; k < HN_N / 4; k += 4) store_transposed(to + (u32)(k * 4 * HN_PITCH), pair + k, k + 4 <= HN_N / 4 ? 4 : 2);
}
#endif

HN_KERNEL_BOUNDS(hn_conv_image, hn_conv_image_args, a, HN_THREADS, HN_RESIDENT) {
  HN_DYNAMIC_SHARED(u8, shared);
  const u32 tiles = hn_shared_address(shared);
  const int thread = (int)threadIdx.x % 128, group = (int)threadIdx.x / 128, warp = thread / 32, lane = thread % 32;
  const u8 *results = shared + HN_BUFFERS * HN_TILE + group * HN_WIDE * HN_PITCH;
  const u32 out = hn_shared_address(results) + place_of(warp, lane);
  const int first = (int)blockIdx.y * HN_BN, channel = channel_of(first, warp, lane), step = (int)gridDim.x;
  hn_u4 weights[HN_STEPS];
  HN_UNROLL for (int k = 0; k < HN_STEPS; k++)
    weights[k] = hn_ld16((const hn_u4 *)a.w + ((int)blockIdx.y * HN_STEPS + k) * 128 + thread);
  HN_GRID_WAIT(); /* also for the bias, which may have been computed */
  HN_GRID_GO();
  ending end;
  ending_of(&a, channel, &end);
  int at = (int)blockIdx.x, turn = 0;
  for (int k = 0; k < HN_BUFFERS - 1; k++) hn_fetch(&a, at + k * step, tiles, k);
  for (; at < a.tiles; at += step, turn = turn + 1 < HN_BUFFERS ? turn + 1 : 0) {
    asm volatile("cp.async.wait_group %0;" : : "n"(HN_BUFFERS - 2) : "memory");
    hn_async_fence();
    HN_SYNC(); /* the tile is there, and nobody reads the one before it any more, or its results */
    hn_fetch(&a, at + (HN_BUFFERS - 1) * step, tiles, turn > 0 ? turn - 1 : HN_BUFFERS - 1);
    const u64 windows = hn_windows(tiles + (u32)(turn * HN_TILE + group * HN_OUT_ROWS * HN_SH * HN_COLS * 8));
    HN_UNROLL for (int part = 0; part < HN_PARTS; part++) {
      hn_sum acc[HN_N / 2];
      hn_wgmma_fence();
      HN_UNROLL for (int k = 0; k < HN_STEPS; k++) {
        const int from = (k / (HN_WIN / 4) * HN_COLS + k % (HN_WIN / 4) * 4) * 8 + part * (HN_COPIES == 2 ? HN_COPY : HN_N * 16);
        if (k == 0) hn_wgmma_first(acc, weights[k].v, windows + (u32)from / 16);
        else hn_wgmma_add(acc, weights[k].v, windows + (u32)from / 16);
      }
      hn_wgmma_commit();
      HN_WGMMA_WAIT(0);
      finish(&a, acc, &end, out + (u32)(part * HN_N * HN_PITCH), channel);
    }
    hn_sync_some(1 + (u32)group, 128);
    /* A thread takes 16 bytes of every 16th (32nd) pixel. */
    const hn_place p = hn_place_of(&a, at);
    const int each = 128 / HN_VECTORS, v = thread % HN_VECTORS, y = p.y + group * HN_OUT_ROWS + v / (HN_BN / HN_VECTOR),
              c = first / HN_VECTOR + v % (HN_BN / HN_VECTOR);
    const int width = y < a.out_h && c < a.vectors ? a.out_w - p.x : 0;
    hn_element *line = (hn_element *)a.y + (i64)p.n * a.y_image + (i64)y * a.y_row + (i64)p.x * a.y_pixel + c * HN_VECTOR;
    HN_UNROLL for (int k = 0; k < HN_WIDE; k += each) {
      const int px = k + thread / HN_VECTORS, row = HN_COPIES == 2 ? px % 2 * HN_N + px / 2 : px;
      if ((k + each <= HN_WIDE || px < HN_WIDE) && px < width)
        hn_st16(line + (i64)px * a.y_pixel, *(const hn_u4 *)(results + row * HN_PITCH + v * 16));
    }
  }
}
