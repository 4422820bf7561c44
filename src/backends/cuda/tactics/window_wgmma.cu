/* Convolution of up to eight channels (a network's first) on Hopper's tensor cores.
 *
 * A pixel is 16 bytes: half of K of one product. A box of input rows, its pixels dealt into HN_STRIDE planes by
 * their place modulo the stride, comes to shared memory once; of it, eight neighbouring output pixels of any tap
 * are 128 bytes in a row, so that the products read every tap from where it lies. Neighbouring taps of a plane
 * are the two halves of K. The weights of all taps stay in shared memory. Two warpgroups take turns in tiles of
 * HN_WM rows of 64 output pixels. Compiled with
 *   HN_T          f16 or bf16: of everything
 *   HN_WM         output rows of a tile
 *   HN_BN         columns of a tile: 32 or 64
 *   HN_KH, HN_KW  the kernel; HN_STRIDE_H; HN_STRIDE, HN_PAD: along a row
 * and the generated epilogue. */
#include "hopper.cuh"
#include "window_wgmma_args.h"

#define HN_PASTE_(a, b) a##b
#define HN_PASTE(a, b) HN_PASTE_(a, b)
#define HN_MMA_f16 "f16.f16"
#define HN_MMA_bf16 "bf16.bf16"
#define HN_PACK_f16 hn_to_f16x2
#define HN_PACK_bf16 hn_to_bf16x2
HN_PASTE(HN_DEFINE_WGMMA_, HN_BN)(wgmma, HN_PASTE(HN_MMA_, HN_T))

/* Taps of plane p: TAP0(p), TAP0(p) + HN_STRIDE...; where the first lies, in pixels of the plane. */
#define TAP0(p) (((p) + HN_PAD) % HN_STRIDE)
#define TAPS(p) (TAP0(p) < HN_KW ? (HN_KW - TAP0(p) + HN_STRIDE - 1) / HN_STRIDE : 0)
#define BEGIN(p) ((HN_PAD + HN_STRIDE - 1) / HN_STRIDE + (TAP0(p) - HN_PAD - (p)) / HN_STRIDE)

enum {
  WIDE = 64 + (HN_KW + HN_STRIDE - 1) / HN_STRIDE + 1, /* pixels of a plane's row */
  HIGH = (HN_WM - 1) * HN_STRIDE_H + HN_KH,
  PLANE_ROW = WIDE * 16,
  BOX = HIGH * HN_STRIDE * PLANE_ROW,
  BOX_ROOM = (BOX + 127) / 128 * 128,
  OUT_ROW = HN_BN * 2,
  OUT = 64 * OUT_ROW, /* of one output row */
  BUFFERS = 2         /* boxes of a warpgroup */
};

typedef struct place {
  i32 x, y, image;
} place;
HN_FN place place_of(const hn_window_wgmma_args *g, i32 tile) {
  i32 line = tile / g->segments, image = line / g->strips;
  place p = {(tile - line * g->segments) * 64, (line - image * g->strips) * HN_WM, image};
  return p;
}

HN_KERNEL_BOUNDS(window_wgmma, hn_window_wgmma_args, g, 384, 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  u32 weights = hn_shared_address(memory), out = weights + HN_BLOCKS * HN_BN * 128, boxes = out + 2 * HN_WM * OUT,
      full = boxes + 2 * BUFFERS * BOX_ROOM, empty = full + 16 * BUFFERS, ready = empty + 16 * BUFFERS;
  u32 group = threadIdx.x / 128, t = threadIdx.x & 127;
  i32 first = (i32)blockIdx.x / g.n_tiles, step = (i32)gridDim.x / g.n_tiles, n8 = (i32)blockIdx.x % g.n_tiles * (HN_BN / 8);
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < 4 * BUFFERS; i++) hn_barrier_init(full + 8 * i, 1); /* and `empty` */
    hn_barrier_init(ready, 1);
    hn_barrier_init_fence();
  }
  HN_SYNC();
  if (group == 0) {
    HN_REGISTERS_LESS(40);
    if (t == 0) {
      u32 here = (u32)(g.n8 - n8 < HN_BN / 8 ? g.n8 - n8 : HN_BN / 8) * 1024;
      hn_barrier_expect(ready, HN_BLOCKS * here);
      for (i32 b = 0; b < HN_BLOCKS; b++)
        hn_bulk_load(weights + b * HN_BN * 128, (const u8 *)g.weights + ((i64)b * g.n8 + n8) * 1024, here, ready);
      HN_GRID_WAIT();
      u32 i = 0;
      for (i32 tile = first; tile < g.tiles; tile += step, i++) {
        u32 slot = (i & 1) * BUFFERS + (i >> 1) % BUFFERS, phase = (i >> 1) / BUFFERS & 1;
        place p = place_of(&g, tile);
        hn_barrier_wait(empty + 8 * slot, phase ^ 1);
        hn_barrier_expect(full + 8 * slot, BOX);
        hn_tma_load_5d(boxes + slot * BOX_ROOM, &g.x, full + 8 * slot, 0, p.x + g.first, 0, p.y * HN_STRIDE_H - g.pad_h, p.image);
      }
    }
  } else {
    HN_REGISTERS_MORE(232);
    group--;
    u32 warp = t / 32, lane = t & 31, i = 0, mine = out + group * HN_WM * OUT;
    HN_GRID_WAIT();
    hn_barrier_wait(ready, 0);
    for (i32 tile = first + (i32)group * step; tile < g.tiles; tile += 2 * step, i++) {
      u32 slot = group * BUFFERS + i % BUFFERS;
      place p = place_of(&g, tile);
      float d[HN_WM][HN_BN / 2];
      hn_barrier_wait(full + 8 * slot, i / BUFFERS & 1);
      hn_wgmma_fence();
      HN_UNROLL for (u32 r = 0; r < HN_KH; r++) {
        u32 pair = 0; /* within the kernel's row */
        HN_UNROLL for (u32 plane = 0; plane < HN_STRIDE; plane++) {
          HN_UNROLL for (u32 k = 0; k < TAPS(plane); k += 2, pair++) {
            u32 at = r * HN_PAIRS + pair;
            u64 b = hn_wgmma_operand(weights + at / 4 * (HN_BN * 128) + at % 4 * 32, 128);
            HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
              u32 a = boxes + slot * BOX_ROOM + ((m * HN_STRIDE_H + r) * HN_STRIDE + plane) * PLANE_ROW + (BEGIN((i32)plane) + k) * 16;
              /* A last tap without neighbour is read twice, with zeros for weights. */
              wgmma(d[m], hn_wgmma_plain_operand(a, k + 1 < TAPS(plane) ? 16 : 0, 128), b, at > 0);
            }
          }
        }
      }
      hn_wgmma_commit();
      HN_WGMMA_WAIT(0);
      if (t == 0) {
        hn_barrier_arrive(empty + 8 * slot);
        HN_BULK_WAIT_READ(0);
      }
      hn_sync_some(1 + group, 128);
      HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j += 2) {
        i32 channel = n8 * 8 + (i32)(j * 8 + 2 * (lane & 3));
        float vectors[HN_EPILOGUE_VECTORS + 1][4];
        hn_epilogue_fragment_vectors(vectors, channel, &g.epilogue);
        HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
          float x[8], none[8];
          HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = d[m][j * 4 + k];
          i32 column = p.x + (i32)(warp * 16 + lane / 4), rows = column + 8 < g.ow ? 2 : column < g.ow;
          if (p.y + (i32)m >= g.oh) rows = 0;
          i64 at = (((i64)p.image * g.oh + p.y + m) * g.ow + column) * g.y_pixel + channel;
          hn_epilogue_fragment(x, vectors, none, channel, at, 8 * g.y_pixel, rows, &g.epilogue);
          u32 row = warp * 16 + (lane & 15), chunk = j + lane / 16;
          u32 swizzle = OUT_ROW == 128 ? row & 7 : row >> 1 & 3;
          hn_u4 v;
          HN_UNROLL for (i32 k = 0; k < 4; k++) v.v[k] = HN_PASTE(HN_PACK_, HN_T)(x[2 * k], x[2 * k + 1]);
          hn_matrix_store(mine + m * OUT + row * OUT_ROW + ((chunk ^ swizzle) << 4), v);
        }
      }
      hn_async_fence();
      hn_sync_some(1 + group, 128);
      if (t == 0) {
        HN_UNROLL for (i32 m = 0; m < HN_WM; m++)
          if (p.y + m < g.oh) hn_tma_store_3d(&g.out, mine + m * OUT, n8 * 8, p.x, p.image * g.oh + p.y + m);
        hn_bulk_commit();
      }
    }
    if (t == 0) hn_bulk_wait();
  }
}
