/* A depthwise convolution and the 1x1 behind it as one kernel, on Hopper: what lies between them is in no memory
 * but the multiprocessor's own.
 *
 * A tile is a box of output pixels, of HN_IMAGES images where these are small, and has all columns of the product.
 * It goes through the channels HN_CB at a time. The copy engine brings a block's box of x with its border (and
 * zeros for what lies outside of the image); a group of warps turns it into a block of the product's A, in shared
 * memory as a warpgroup product reads it; one warpgroup multiplies. Groups of warps take blocks in turn: while one
 * waits, others compute.
 *
 * A thread of a group has four channels, and of an image HN_BH / HN_STRIPS rows of two columns, down which it goes:
 * weights and the sums of the rows that an input row belongs to are in registers, so that an element is read and
 * widened once a column pair.
 *
 * Prefix:
 *   HN_T                    f16 or bf16
 *   HN_KH, HN_KW, HN_SH, HN_SW   kernel and stride of the depthwise convolution
 *   HN_CB                   channels of a block: 32, 48 or 64
 *   HN_BH, HN_BW, HN_IMAGES the box; at most 64 HN_WM pixels, HN_BW even. HN_STRIPS of HN_BH / HN_STRIPS rows
 *   HN_BN                   columns of the product, in what a warpgroup product may have
 *   HN_CHUNKS               of 64 columns of y
 *   HN_GROUPS               of warps
 *   HN_INPUTS, HN_SLOTS     boxes of x, and blocks of A with their weights, that shared memory has. Who waits for a
 *                           barrier may be one phase behind, not two: no fewer slots than groups, so that a group's
 *                           block before the last is known to be multiplied, and no fewer boxes than slots
 *   HN_PANELS               tiles of results that it has: 1, or 2, so that one can be on its way
 *   HN_STAGED               whether the epilogue adds a tensor
 * and the generated epilogues: hn_inner4 of the depthwise convolution, hn_epilogue_* of the 1x1. */
#include "depth_chain_args.h"
#include "hopper.cuh"
#include "pairs.cuh"

#define HN_MMA_f16 "f16.f16"
#define HN_MMA_bf16 "bf16.bf16"
HN_PASTE(HN_DEFINE_WGMMA_, HN_BN)(wgmma, HN_PASTE(HN_MMA_, HN_T))
#define hn_pack HN_PASTE(HN_PACK_, HN_T)

enum {
  ROWS = HN_BH / HN_STRIPS, /* of a thread */
  PAIRS = HN_BW / 2,        /* of columns */
  QUADS = HN_CB / 4,        /* threads of a pixel */
  UNITS = HN_IMAGES * HN_STRIPS * PAIRS,
  WARPS = (UNITS * QUADS + 31) / 32, /* of a group */
  COLUMNS = HN_SW + HN_KW,                   /* of the input that a thread reads */
  READ_ROWS = (ROWS - 1) * HN_SH + HN_KH,    /* likewise */
  LIVE = (HN_KH + HN_SH - 1) / HN_SH,        /* output rows that an input row belongs to */
  IN_W = (HN_BW - 1) * HN_SW + HN_KW,
  IN_H = (HN_BH - 1) * HN_SH + HN_KH,
  IN_BYTES = HN_IMAGES * IN_H * IN_W * HN_CB * 2,
  IN_BOX = (IN_BYTES + 127) / 128 * 128,
  DEPTH_BYTES = (HN_KH * HN_KW + 1) * HN_CB * 4,
  IN_STAGE = (IN_BOX + DEPTH_BYTES + 127) / 128 * 128, /* a box of x, and the block's weights */
  A_BYTES = 64 * HN_WM * 128,
  B_BYTES = HN_BN * 128,
  BOX_PIXELS = HN_IMAGES * HN_BH * HN_BW,
  PANEL = A_BYTES /* 64 columns of results */
};

typedef struct places {
  u32 a, b, panels, inputs;             /* addresses in shared memory */
  u32 arrived, full, empty;             /* barriers: a box of x; A and B of a block; their slot is free */
  u32 staged;                           /* likewise: what is added */
} places;

/* The tiles of a block of threads are gridDim.x apart: where one is, counted in boxes, and how far another. */
typedef struct box {
  i32 x, y, n;
} box;
HN_FN box box_of(const hn_depth_chain_args *g, u32 tile) {
  const u32 row = tile / (u32)g->boxes_x, images = row / (u32)g->boxes_y;
  box b = {(i32)(tile - row * (u32)g->boxes_x), (i32)(row - images * (u32)g->boxes_y), (i32)images};
  return b;
}
HN_FN box plus(const hn_depth_chain_args *g, box a, box step) {
  a.x += step.x, a.y += step.y, a.n += step.n;
  if (a.x >= g->boxes_x) a.x -= g->boxes_x, a.y++;
  if (a.y >= g->boxes_y) a.y -= g->boxes_y, a.n++;
  return a;
}

/* ---- the depthwise side */

HN_FN void widen(u64 v, float f[4]) {
  HN_UNROLL for (u32 k = 0; k < 4; k++) f[k] = HN_PASTE(hn_, HN_T)((u16)(v >> 16 * k));
}

HN_FN void load4(float *w, const u8 *from) {
  hn_u4 v = *(const hn_u4 *)from;
  HN_UNROLL for (u32 k = 0; k < 4; k++) w[k] = hn_from_bits(v.v[k]);
}

/* One thread's part of a block: from its first pixel of the box, into A from row on. */
HN_FN void depthwise(const hn_depth_chain_args *g, const u8 *from, u32 a, u32 row, u32 quad, i32 channel,
                     const float w[HN_KH * HN_KW][4], const float bias[4]) {
  float sum[LIVE][2][4];
  HN_UNROLL for (i32 i = 0; i < READ_ROWS; i++) {
    float f[COLUMNS][4];
    HN_UNROLL for (i32 c = 0; c < COLUMNS; c++) widen(*(const u64 *)(from + (i * IN_W + c) * (HN_CB * 2)), f[c]);
    HN_UNROLL for (i32 o = 0; o < ROWS; o++) {
      const i32 kh = i - o * HN_SH;
      if (kh < 0 || kh >= HN_KH) continue;
      HN_UNROLL for (i32 p = 0; p < 2; p++) {
        HN_UNROLL for (i32 kw = 0; kw < HN_KW; kw++) {
          HN_UNROLL for (u32 k = 0; k < 4; k++) {
            const float before = kh + kw ? sum[o % LIVE][p][k] : bias[k];
            sum[o % LIVE][p][k] = __fmaf_rn(w[kh * HN_KW + kw][k], f[p * HN_SW + kw][k], before);
          }
        }
      }
      if (kh < HN_KH - 1) continue;
      HN_UNROLL for (u32 p = 0; p < 2; p++) {
        float x[4];
        HN_UNROLL for (u32 k = 0; k < 4; k++) x[k] = sum[o % LIVE][p][k];
        hn_inner4(x, channel, 0, &g->inner);
        const u32 r = row + (u32)o * HN_BW + p;
        hn_shared_st8(a + r * 128 + (((quad >> 1) ^ (r & 7)) << 4) + (quad & 1) * 8, hn_pack(x[0], x[1]), hn_pack(x[2], x[3]));
      }
    }
  }
}

HN_FN void produce(const hn_depth_chain_args *g, const places *s, const u8 *inputs, u32 blocks) {
  const u32 group = (threadIdx.x - 128) / 32 / WARPS, t = threadIdx.x - 128 - group * WARPS * 32;
  if (group >= HN_GROUPS) return;
  const u32 unit = t / QUADS, quad = t % QUADS, works = unit < UNITS;
  const u32 pair = unit % PAIRS, strip = unit / PAIRS % HN_STRIPS, image = unit / (PAIRS * HN_STRIPS);
  const u32 from = ((image * IN_H + strip * ROWS * HN_SH) * IN_W + pair * 2 * HN_SW) * (HN_CB * 2) + quad * 8;
  const u32 row = (image * HN_BH + strip * ROWS) * HN_BW + pair * 2;
  u32 block = group % (u32)g->k_blocks;
  HN_GRID_WAIT();
  for (u32 i = group; i < blocks; i += HN_GROUPS) {
    const u32 in = i % HN_INPUTS, slot = i % HN_SLOTS;
    const i32 channel = (i32)(block * HN_CB + quad * 4);
    const u8 *stage = inputs + in * IN_STAGE;
    float w[HN_KH * HN_KW][4], bias[4];
    hn_barrier_wait(s->empty + 8 * slot, (i / HN_SLOTS & 1) ^ 1);
    hn_barrier_wait(s->arrived + 8 * in, i / HN_INPUTS & 1);
    HN_UNROLL for (i32 tap = 0; tap < HN_KH * HN_KW; tap++) load4(w[tap], stage + IN_BOX + (tap * HN_CB + quad * 4) * 4);
    load4(bias, stage + IN_BOX + (HN_KH * HN_KW * HN_CB + quad * 4) * 4);
    if (works) depthwise(g, stage + from, s->a + slot * A_BYTES, row, quad, channel, w, bias);
    hn_async_fence();
    HN_SYNC_WARP();
    if (threadIdx.x % 32 == 0) hn_barrier_arrive(s->full + 8 * slot);
    block += HN_GROUPS;
    while (block >= (u32)g->k_blocks) block -= (u32)g->k_blocks;
  }
}

/* ---- the product's side. A thread of each warp but the first starts copies, so that none has to do it all: of
 * boxes of x, of weights, of what is added and of results. */
enum { LOADER = 32, REFILLER = 64, STORER = 96 };

HN_FN void load_input(const hn_depth_chain_args *g, const places *s, u32 stage, box tile, i32 block) {
  const u32 arrived = s->arrived + 8 * stage, to = s->inputs + stage * IN_STAGE;
  hn_barrier_expect(arrived, IN_BYTES + DEPTH_BYTES);
  hn_bulk_load(to + IN_BOX, (const u8 *)g->depth + (i64)block * DEPTH_BYTES, DEPTH_BYTES, arrived);
  hn_tma_load_4d(to, &g->x, arrived, block * HN_CB, tile.x * (HN_BW * HN_SW) - g->pad_w,
                 tile.y * (HN_BH * HN_SH) - g->pad_h, tile.n * HN_IMAGES);
}

HN_FN void load_weights(const hn_depth_chain_args *g, const places *s, u32 slot, i32 block) {
  hn_barrier_expect(s->full + 8 * slot, B_BYTES);
  hn_bulk_load(s->b + slot * B_BYTES, (const u8 *)g->weights + (i64)block * B_BYTES, B_BYTES, s->full + 8 * slot);
}

/* The epilogue's vectors stay in registers where there is room. */
#define HN_KEPT (HN_BN * HN_EPILOGUE_VECTORS <= 96)
typedef float vectors[HN_EPILOGUE_VECTORS + 1][4];
HN_FN i32 channel_of(u32 j) { return (i32)(j * 8 + 2 * (threadIdx.x & 3)); }

/* Results of a tile, with the epilogue, into the panels; where something is added it lies there. */
HN_FN void finish(const hn_depth_chain_args *g, u32 panels, float d[HN_WM][HN_BN / 2], vectors *kept) {
  const u32 warp = threadIdx.x / 32 & 3, lane = threadIdx.x & 31;
  HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j += 2) {
    const i32 channel = channel_of(j);
#if HN_KEPT
    float(*v)[4] = kept[j / 2];
#else
    vectors v;
    (void)kept;
    hn_epilogue_fragment_vectors(v, channel, &g->epilogue);
#endif
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      float x[8], other[8];
      HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = d[m][j * 4 + k];
      const u32 row = m * 64 + warp * 16 + (lane & 15);
      const u32 place = panels + j / 8 * PANEL + row * 128 + ((((j & 7) + lane / 16) ^ (row & 7)) << 4);
#if HN_STAGED
      HN_PASTE(unpack_, HN_T)(hn_matrix_load(place).v, other);
#endif
      hn_epilogue_fragment(x, v, other, channel, 0, 0, 0, &g->epilogue);
      hn_u4 y;
      HN_UNROLL for (i32 k = 0; k < 4; k++) y.v[k] = hn_pack(x[2 * k], x[2 * k + 1]);
      hn_matrix_store(place, y);
    }
  }
}

HN_FN void multiply(float d[HN_WM][HN_BN / 2], u32 a, u32 b) {
  hn_wgmma_fence();
  HN_UNROLL for (u32 k = 0; k < HN_CB / 16; k++) {
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++)
      wgmma(d[m], hn_wgmma_operand(a + m * 64 * 128 + k * 32, 128), hn_wgmma_operand(b + k * 32, 128), 1);
  }
  hn_wgmma_commit();
}

/* What comes before the first tile: as many boxes and weights as there is room for. */
HN_FN void begin(const hn_depth_chain_args *g, const places *s, u32 t, i32 blocks) {
  if (t == REFILLER)
    for (i32 i = 0; i < HN_SLOTS && i < blocks; i++) load_weights(g, s, (u32)i, i % g->k_blocks);
  HN_GRID_WAIT();
  if (t == LOADER)
    for (i32 i = 0; i < HN_INPUTS && i < blocks; i++)
      load_input(g, s, (u32)i, box_of(g, blockIdx.x + (u32)(i / g->k_blocks) * gridDim.x), i % g->k_blocks);
}

HN_FN void consume(const hn_depth_chain_args *g, const places *s, i32 tiles) {
  const u32 t = threadIdx.x;
  const i32 blocks = tiles * g->k_blocks;
  /* Block i has the stage and the slot of block i + HN_INPUTS and i + HN_SLOTS: so many tiles and blocks on. */
  const i32 tiles_on = HN_INPUTS / g->k_blocks, blocks_on = HN_INPUTS % g->k_blocks, refill_on = HN_SLOTS % g->k_blocks;
  const box step = box_of(g, gridDim.x);
  box at = box_of(g, blockIdx.x), ahead = box_of(g, blockIdx.x + gridDim.x * (u32)tiles_on);
  if (t == LOADER) hn_map_prefetch(&g->x);
  if (t == STORER) hn_map_prefetch(&g->out);
  begin(g, s, t, blocks);
  vectors kept[HN_KEPT ? HN_BN / 16 : 1];
#if HN_KEPT
  HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j += 2) hn_epilogue_fragment_vectors(kept[j / 2], channel_of(j), &g->epilogue);
#endif
  i32 i = 0;
  u32 slot = 0, phase = 0, stage = 0;
  for (i32 tile = 0; tile < tiles; tile++) {
    const u32 panels = s->panels + (u32)tile % HN_PANELS * (HN_CHUNKS * PANEL);
    const i32 x = at.x * HN_BW, y = at.y * HN_BH, n = at.n * HN_IMAGES;
    const box later = plus(g, ahead, step);
#if HN_STAGED
    if (t == STORER) {
      HN_BULK_WAIT_READ(HN_PANELS - 1);
      hn_barrier_expect(s->staged, HN_CHUNKS * BOX_PIXELS * 128);
      for (i32 chunk = 0; chunk < HN_CHUNKS; chunk++)
        hn_tma_load_4d(panels + (u32)chunk * PANEL, &g->staged, s->staged, chunk * 64, x, y, n);
    }
#endif
    float d[HN_WM][HN_BN / 2];
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      HN_UNROLL for (u32 k = 0; k < HN_BN / 2; k++) d[m][k] = 0; /* so that it need not live until here */
    }
    for (i32 block = 0; block < g->k_blocks; block++, i++) {
      hn_barrier_wait(s->full + 8 * slot, phase);
      multiply(d, s->a + slot * A_BYTES, s->b + slot * B_BYTES);
      if (t == LOADER && i + HN_INPUTS < blocks) { /* the block's box of x has been read */
        const i32 there = block + blocks_on, over = there >= g->k_blocks;
        load_input(g, s, stage, over ? later : ahead, over ? there - g->k_blocks : there);
      }
      HN_WGMMA_WAIT(0); /* short beside the making of a block: its slot is what is short */
      if (t % 32 == 0) hn_barrier_arrive(s->empty + 8 * slot);
      if (t == REFILLER && i + HN_SLOTS < blocks) {
        const i32 there = block + refill_on;
        hn_barrier_wait(s->empty + 8 * slot, phase); /* the other warps have multiplied, too */
        load_weights(g, s, slot, there >= g->k_blocks ? there - g->k_blocks : there);
      }
      if (++slot == HN_SLOTS) slot = 0, phase ^= 1;
      if (++stage == HN_INPUTS) stage = 0;
    }
#if HN_STAGED
    hn_barrier_wait(s->staged, (u32)tile & 1);
#else
    if (t == STORER) HN_BULK_WAIT_READ(HN_PANELS - 1);
    hn_sync_some(1, 128);
#endif
    finish(g, panels, d, kept);
    hn_async_fence();
    hn_sync_some(1, 128);
    if (t == STORER) {
      for (i32 chunk = 0; chunk < HN_CHUNKS; chunk++)
        hn_tma_store_4d(&g->out, panels + (u32)chunk * PANEL, chunk * 64, x, y, n);
      hn_bulk_commit();
    }
    at = plus(g, at, step), ahead = later;
  }
  if (t == STORER) hn_bulk_wait();
}

HN_KERNEL_BOUNDS(depth_chain, hn_depth_chain_args, g, 512, 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  places s;
  s.a = hn_shared_address(memory);
  s.b = s.a + HN_SLOTS * A_BYTES;
  s.panels = s.b + HN_SLOTS * B_BYTES;
  s.inputs = s.panels + HN_PANELS * HN_CHUNKS * PANEL;
  s.arrived = s.inputs + HN_INPUTS * IN_STAGE;
  s.full = s.arrived + 8 * HN_INPUTS;
  s.empty = s.full + 8 * HN_SLOTS;
  s.staged = s.empty + 8 * HN_SLOTS;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_INPUTS; i++) hn_barrier_init(s.arrived + 8 * i, 1);
    for (u32 i = 0; i < HN_SLOTS; i++) {
      hn_barrier_init(s.full + 8 * i, WARPS + 1);
      hn_barrier_init(s.empty + 8 * i, 4); /* warps that multiply */
    }
    hn_barrier_init(s.staged, 1);
    hn_barrier_init_fence();
  }
  HN_SYNC();
  const i32 tiles = (g.tiles - (i32)blockIdx.x + (i32)gridDim.x - 1) / (i32)gridDim.x;
  if (threadIdx.x < 128) {
    HN_REGISTERS_MORE(168);
    consume(&g, &s, tiles);
  } else {
    HN_REGISTERS_LESS(112);
    produce(&g, &s, memory + (s.inputs - s.a), (u32)(tiles * g.k_blocks));
  }
}
