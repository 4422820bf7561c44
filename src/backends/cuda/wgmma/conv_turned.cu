/* Convolution as an implicit GEMM by products of warpgroups with output channels as rows and pixels as columns: a tile
 * may have any eights of pixels, so that tiles fill whole rounds of the multiprocessors. (Tiles of conv_wgmma.cu have
 * 64s of pixels.)
 *
 * K runs over (tap, channel) in blocks of 128 bytes. Threads of one warpgroup copy and store, two warpgroups multiply: each
 * has HN_WM 64s of the tile's channels, and all of its pixels. Blocks of threads are persistent: tile after tile. A
 * ring of places in shared memory holds blocks of K, pixels and weights; at a tile's end RESULTS places of it hold
 * panels of pixels x 64 channels: what is added, then in the same place the results, which leave from there.
 *
 * HN_SPLITS > 1: a tile belongs to a cluster, whose blocks divide K. Each sends what it has of eight pixels to the block
 * that ends these, where all parts lie side by side, added up in the order of the blocks.
 *
 * Compiled with HN_T (f16, bf16), HN_WM (1, 2), HN_N (pixels of a tile, in eights), HN_STAGES (places), HN_PANELS (of
 * a place: 1, 2), HN_A (HN_A_MATRIX, HN_A_IM2COL), HN_UNIT (channels that one copy of pixels takes), HN_STAGED (what
 * is added comes by the copy engine), HN_SPLITS (then HN_WM is 1), hn_wgmma_both (products of 64 x HN_N x 32 bytes), the
 * epilogue. Or, of codes (turned_codes.cuh), HN_T u8 or i8 and HN_CODE in place of the epilogue; blocks of K are twice as
 * many elements then, and HN_BORDER: what zeros outside of the image lack is added to the sums. */
#include "conv_wgmma_args.h"
#include "sums.cuh"
#ifdef HN_CODE
#include "lacking.cuh"
#include "turned_codes.cuh"
#define HN_BYTES 1

HN_FN void ending_of(const hn_conv_wgmma_args *g, i32 channel, ending *e) { ending_at(&g->codes, g->n, channel, e); }
HN_FN void finish_pixels(const hn_conv_wgmma_args *g, const i32 *d, u32 pixels, ending *e, u32 to, i32 channel) {
  (void)channel;
  finish_codes(&g->codes, d, pixels, e, to);
}
#ifdef HN_BORDER
/* By the 128 threads of a warpgroup. */
HN_FN void put_kinds(const hn_conv_wgmma_args *g, u32 to, i32 pixel, u32 t) {
  for (u32 i = t; i < HN_N; i += 128) put_kind(to + 2 * i, kind_of(g, pixel + (i32)i));
}
#endif
#else
#include "turned.cuh"
#define HN_BYTES 2

typedef struct ending {
  float vectors[HN_EPILOGUE_VECTORS + 1][4];
} ending;
HN_FN void ending_of(const hn_conv_wgmma_args *g, i32 channel, ending *e) { channel_vectors(e->vectors, channel, &g->epilogue); }
HN_FN void finish_pixels(const hn_conv_wgmma_args *g, const float *d, u32 pixels, ending *e, u32 to, i32 channel) {
  finish_panel(d, pixels, e->vectors, to, channel, &g->epilogue);
}
#endif

#define HN_A_MATRIX 0
#define HN_A_IM2COL 1

enum {
  GROUPS = 2,
  CHANNELS = GROUPS * HN_WM * 64, /* of a tile */
  PIXEL_BYTES = HN_N * 128,       /* of a block of K */
  STAGE = PIXEL_BYTES + CHANNELS * 128,
  K_BLOCK = 128 / HN_BYTES,
  UNIT_ROW = HN_UNIT * HN_BYTES, /* bytes */
  UNITS = K_BLOCK / HN_UNIT,
  PANEL_ROW = 64 * HN_BYTES,
#if HN_SPLITS > 1
  EIGHTS = HN_N / 8,
  MOST_EIGHTS = (EIGHTS + HN_SPLITS - 1) / HN_SPLITS, /* that a block ends: its own and each HN_SPLITS further */
  PART = GROUPS * 128 * 16,                           /* bytes of a block's sums of eight pixels */
  PANEL = 8 * PANEL_ROW,                              /* of eight pixels x 64 channels */
#else
  PANEL = HN_N * PANEL_ROW,
  RESULTS = GROUPS * HN_WM / HN_PANELS, /* places with results of a tile */
#endif
};

typedef struct shared_map {
  u32 places, full, empty, ready; /* addresses; ready: results may leave; HN_SPLITS: what is added is there */
  u32 parts, panels;              /* HN_SPLITS: sums of all blocks, what is added and the results, of this block's pixels */
  u32 kinds;                      /* HN_BORDER: of a tile's pixels, for each warpgroup and every other tile */
} shared_map;

typedef struct ring {
  u32 stage, phase;
} ring;
HN_FN void advance(ring *r) {
  if (++r->stage == HN_STAGES) r->stage = 0, r->phase ^= 1;
}

/* Of a tile: its first pixel, its first channel. */
HN_FN i32 pixel_of(const hn_conv_wgmma_args *g, i32 tile) { return tile / g->n_tiles * HN_N; }
HN_FN i32 channel_of(const hn_conv_wgmma_args *g, i32 tile) { return tile % g->n_tiles * CHANNELS; }

HN_FN void load_weights(const hn_conv_wgmma_args *g, const shared_map *s, u32 stage, i32 block, i32 channel) {
  const i32 n8 = channel / 8, here = g->n8 - n8 < CHANNELS / 8 ? g->n8 - n8 : CHANNELS / 8;
  const u32 full = s->full + 8 * stage;
  hn_barrier_expect(full, PIXEL_BYTES + (u32)here * 1024);
  hn_bulk_load(s->places + stage * STAGE + PIXEL_BYTES, (const u8 *)g->weights + ((i64)block * g->n8 + n8) * 1024,
               (u32)here * 1024, full);
}

/* Panels lie side by side: of the warpgroups, then of their next 64 channels. */
HN_FN i32 channel_of_panel(u32 panel) { return (i32)(panel % GROUPS * HN_WM + panel / GROUPS) * 64; }

/* A tile's blocks of K that this block of threads multiplies. */
typedef struct range {
  i32 from, to;
} range;
#if HN_SPLITS > 1
HN_FN range range_of(const hn_conv_wgmma_args *g) {
  const i32 rank = (i32)hn_cluster_rank();
  const range r = {g->k_blocks * rank / HN_SPLITS, g->k_blocks * (rank + 1) / HN_SPLITS};
  return r;
}
/* Of the tile's first pixel and channel: what is added to this block's pixels. */
HN_FN void load_added(const hn_conv_wgmma_args *g, const shared_map *s, i32 pixel, i32 channel) {
#if HN_STAGED
  const u32 rank = hn_cluster_rank(), mine = (EIGHTS - rank + HN_SPLITS - 1) / HN_SPLITS;
  hn_barrier_expect(s->ready, mine * GROUPS * PANEL);
  for (u32 i = 0; i < mine; i++) {
    HN_UNROLL for (u32 p = 0; p < GROUPS; p++)
      hn_tma_load_2d(s->panels + (i * GROUPS + p) * PANEL, &g->staged, s->ready, channel + (i32)p * 64,
                     pixel + (i32)(rank + i * HN_SPLITS) * 8);
  }
#else
  (void)g, (void)s, (void)pixel, (void)channel;
#endif
}
#else
HN_FN range range_of(const hn_conv_wgmma_args *g) {
  const range r = {0, g->k_blocks};
  return r;
}
#endif

HN_FN void load(const hn_conv_wgmma_args *g, const shared_map *s) {
  hn_map_prefetch(&g->a);
  ring in = {0, 0};
  const range mine = range_of(g);
  i32 early = 0; /* weights that came before the kernel in front of this one has ended */
  for (; early < HN_STAGES && early < mine.to - mine.from && (i32)blockIdx.x / HN_SPLITS < g->tiles; early++)
    load_weights(g, s, (u32)early, mine.from + early, channel_of(g, (i32)blockIdx.x / HN_SPLITS));
  HN_GRID_WAIT();
  for (i32 tile = (i32)blockIdx.x / HN_SPLITS; tile < g->tiles; tile += (i32)gridDim.x / HN_SPLITS) {
    const i32 pixel = pixel_of(g, tile), channel = channel_of(g, tile);
#if HN_A == HN_A_IM2COL
    const i32 image = g->oh * g->ow, n = pixel / image, r = pixel - n * image, y = r / g->ow, x = r - y * g->ow;
    const i32 h0 = y * g->stride_h - g->pad_h, w0 = x * g->stride_w - g->pad_w;
    const i32 units = (g->cin + HN_UNIT - 1) / HN_UNIT; /* of a tap */
    i32 tap = mine.from * UNITS / units, c = (mine.from * UNITS - tap * units) * HN_UNIT, row = tap / g->kw, column = tap - row * g->kw;
    i32 dx = column * g->dilation_w, dy = row * g->dilation_h;
#endif
    for (i32 block = mine.from; block < mine.to; block++) {
      if (early) {
        early--;
      } else {
        hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
        load_weights(g, s, in.stage, block, channel);
      }
      const u32 to = s->places + in.stage * STAGE, full = s->full + 8 * in.stage;
      HN_UNROLL for (i32 u = 0; u < UNITS; u++) {
#if HN_A == HN_A_IM2COL
        /* Beyond the last tap: channels that do not exist are zeros. */
        const u32 there = tap < g->taps;
        hn_tma_load_im2col(to + (u32)u * (HN_N * UNIT_ROW), &g->a, full, there ? c : g->cin, w0, h0, n,
                           there ? (u32)dx : 0, there ? (u32)dy : 0);
        c += HN_UNIT;
        if (c >= g->cin) {
          c = 0, tap++, dx += g->dilation_w;
          if (++column == g->kw) column = 0, dx = 0, dy += g->dilation_h;
        }
#else
        hn_tma_load_2d(to + (u32)u * (HN_N * UNIT_ROW), &g->a, full, block * K_BLOCK + u * HN_UNIT, pixel);
#endif
      }
      advance(&in);
    }
#if HN_SPLITS > 1
    load_added(g, s, pixel, channel);
#else
    HN_UNROLL for (u32 i = 0; i < RESULTS; i++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      hn_barrier_expect(s->full + 8 * in.stage, HN_STAGED ? HN_PANELS * PANEL : 0);
#if HN_STAGED
      HN_UNROLL for (u32 p = 0; p < HN_PANELS; p++)
        hn_tma_load_2d(s->places + in.stage * STAGE + p * PANEL, &g->staged, s->full + 8 * in.stage,
                       channel + channel_of_panel(i * HN_PANELS + p), pixel);
#endif
      advance(&in);
    }
#endif
  }
}

#if HN_SPLITS == 1
/* Results, when all warps have written theirs; their place is free when they have been read. */
HN_FN void store(const hn_conv_wgmma_args *g, const shared_map *s) {
  u32 at = 0, phases = 0; /* phases: a bit a place, as not every round of the ring has results in it */
  for (i32 tile = (i32)blockIdx.x; tile < g->tiles; tile += (i32)gridDim.x) {
    at = (at + (u32)g->k_blocks) % HN_STAGES;
    for (u32 i = 0; i < RESULTS; i++) {
      hn_barrier_wait(s->ready + 8 * at, phases >> at & 1);
      phases ^= 1u << at;
      HN_UNROLL for (u32 p = 0; p < HN_PANELS; p++)
        hn_tma_store_2d(&g->out, s->places + at * STAGE + p * PANEL,
                        channel_of(g, tile) + channel_of_panel(i * HN_PANELS + p), pixel_of(g, tile));
      hn_bulk_commit();
      HN_BULK_WAIT_READ(0);
      HN_UNROLL for (u32 k = 0; k < GROUPS; k++) hn_barrier_arrive(s->empty + 8 * at); /* for each warpgroup */
      if (++at == HN_STAGES) at = 0;
    }
  }
}
#endif

HN_FN void multiply(hn_sum d[HN_WM][HN_N / 2], u32 pixels, u32 weights, u32 adds) {
  hn_wgmma_fence();
  HN_UNROLL for (u32 k = 0; k < 4; k++) {
    const u32 unit = k * 32 / UNIT_ROW, within = k * 32 % UNIT_ROW;
    const u64 b = hn_wgmma_operand(pixels + unit * (HN_N * UNIT_ROW) + within, UNIT_ROW);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++)
      hn_wgmma_both(d[m], hn_wgmma_operand(weights + m * (64 * 128) + k * 32, 128), b, k > 0 ? 1 : adds);
  }
  hn_wgmma_commit();
}

#if HN_SPLITS > 1

/* Each thread's four sums of eight pixels to where the same thread of another block adds them up. */
HN_FN void send(const shared_map *s, u32 thread, const hn_sum *d) {
  const u32 from = s->parts + hn_cluster_rank() * (MOST_EIGHTS * PART) + thread * 16;
  u32 to[HN_SPLITS];
  HN_UNROLL for (u32 k = 0; k < HN_SPLITS; k++) to[k] = hn_cluster_address(from, k);
  HN_UNROLL for (u32 k = 0; k < EIGHTS; k++) {
    const hn_u4 four = {{hn_sum_bits(d[4 * k]), hn_sum_bits(d[4 * k + 1]), hn_sum_bits(d[4 * k + 2]), hn_sum_bits(d[4 * k + 3])}};
    hn_cluster_st16(to[k % HN_SPLITS] + k / HN_SPLITS * PART, four);
  }
}
HN_FN void receive(const shared_map *s, u32 thread, u32 eight, hn_sum *d) {
  hn_u4 part[HN_SPLITS];
  HN_UNROLL for (u32 k = 0; k < HN_SPLITS; k++) part[k] = hn_shared_ld16(s->parts + (k * MOST_EIGHTS + eight) * PART + thread * 16);
  HN_UNROLL for (u32 i = 0; i < 4; i++) {
    d[i] = 0;
    HN_UNROLL for (u32 k = 0; k < HN_SPLITS; k++) d[i] += hn_sum_of(part[k].v[i]);
  }
}

HN_FN void consume(const hn_conv_wgmma_args *g, const shared_map *s, u32 group) {
  const u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, place = place_in_panel(warp, lane), rank = hn_cluster_rank();
  const i32 tile = (i32)blockIdx.x / HN_SPLITS, first = channel_of(g, tile) + (i32)group * 64;
  const i32 channel = first + channel_in_panel(warp, lane);
  const range mine = range_of(g);
  hn_sum d[1][HN_N / 2];
  ending end;
  ring in = {0, 0};
  HN_GRID_WAIT();
  ending_of(g, channel, &end);
#ifdef HN_BORDER
  put_kinds(g, s->kinds + group * (HN_N * 2), pixel_of(g, tile), t);
#endif
  u32 before = 0;
  for (i32 block = mine.from; block < mine.to; block++) {
    const u32 at = s->places + in.stage * STAGE;
    hn_barrier_wait(s->full + 8 * in.stage, in.phase);
    multiply(d, at, at + PIXEL_BYTES + group * (64 * 128), block > mine.from);
    if (block > mine.from) {
      HN_WGMMA_WAIT(1);
      if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
    }
    before = in.stage;
    advance(&in);
  }
  HN_WGMMA_WAIT(0);
  hn_cluster_wait(); /* all blocks have begun */
  send(s, group * 128 + t, d[0]);
  hn_cluster_sync();
#if HN_STAGED
  hn_barrier_wait(s->ready, 0);
#endif
  HN_UNROLL for (u32 i = 0; i < MOST_EIGHTS; i++) {
    const u32 eight = rank + i * HN_SPLITS, panel = s->panels + (i * GROUPS + group) * PANEL;
    if (eight >= EIGHTS) break;
    hn_sum sums[4];
    receive(s, group * 128 + t, i, sums);
#ifdef HN_BORDER
    add_lacking((const i32 *)g->lacking, g->border_pitch, sums, 8, s->kinds + group * (HN_N * 2) + eight * 16, channel, lane);
#endif
    finish_pixels(g, sums, 8, &end, panel + place, channel);
    hn_async_fence();
    hn_sync_some(1 + group, 128);
    if (t == 0) {
      hn_tma_store_2d(&g->out, panel, first, pixel_of(g, tile) + (i32)eight * 8);
      hn_bulk_commit();
    }
  }
  if (t == 0) HN_BULK_WAIT_READ(0);
}

#else

HN_FN void consume(const hn_conv_wgmma_args *g, const shared_map *s, u32 group) {
  const u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, mine = place_in_panel(warp, lane);
  ring in = {0, 0};
  HN_GRID_WAIT();
#ifdef HN_BORDER
  u32 kinds = s->kinds + group * (HN_N * 2), other = kinds + GROUPS * HN_N * 2;
#endif
  for (i32 tile = (i32)blockIdx.x; tile < g->tiles; tile += (i32)gridDim.x) {
    const i32 first = channel_of(g, tile) + (i32)group * HN_WM * 64 + channel_in_panel(warp, lane);
    hn_sum d[HN_WM][HN_N / 2];
    ending end[HN_WM];
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) ending_of(g, first + (i32)m * 64, &end[m]);
#ifdef HN_BORDER
    /* A warp still ends the tile before this one: its kinds lie elsewhere. */
    const u32 before_these = kinds;
    kinds = other, other = before_these;
    put_kinds(g, kinds, pixel_of(g, tile), t);
    hn_sync_some(1 + group, 128);
#endif
    u32 before = 0;
    for (i32 block = 0; block < g->k_blocks; block++) {
      const u32 at = s->places + in.stage * STAGE;
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      multiply(d, at, at + PIXEL_BYTES + group * (HN_WM * 64 * 128), block > 0);
      if (block > 0) {
        HN_WGMMA_WAIT(1);
        if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
      }
      before = in.stage;
      advance(&in);
    }
    HN_WGMMA_WAIT(0);
    if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      /* The other warpgroup's panel may have a place of its own. It is waited for, too: a barrier tells phases apart by
       * parity only. */
      HN_UNROLL for (u32 i = 0; i < GROUPS / HN_PANELS; i++) {
        hn_barrier_wait(s->full + 8 * in.stage, in.phase);
        if (HN_PANELS == GROUPS || i == group) {
          const u32 panel = s->places + in.stage * STAGE + (HN_PANELS == GROUPS ? group : 0) * PANEL;
#ifdef HN_BORDER
          add_lacking((const i32 *)g->lacking, g->border_pitch, d[m], HN_N, kinds, first + (i32)m * 64, lane);
#endif
          finish_pixels(g, d[m], HN_N, &end[m], panel + mine, first + (i32)m * 64);
          hn_async_fence();
          HN_SYNC_WARP();
          if (lane == 0) hn_barrier_arrive(s->ready + 8 * in.stage);
        }
        advance(&in);
      }
    }
  }
}

#endif

HN_KERNEL_BOUNDS(conv_turned, hn_conv_wgmma_args, g, 128 * (1 + GROUPS), 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  shared_map s;
  s.places = hn_shared_address(memory);
#if HN_SPLITS > 1
  hn_cluster_arrive();
  s.parts = s.places + HN_STAGES * STAGE;
  s.panels = s.parts + HN_SPLITS * MOST_EIGHTS * PART;
  s.full = s.panels + MOST_EIGHTS * GROUPS * PANEL;
#else
  s.full = s.places + HN_STAGES * STAGE;
#endif
  s.empty = s.full + 8 * HN_STAGES;
  s.ready = s.empty + 8 * HN_STAGES;
  s.kinds = s.ready + 8 * HN_STAGES;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_STAGES; i++) {
      hn_barrier_init(s.full + 8 * i, 1);
      hn_barrier_init(s.empty + 8 * i, GROUPS);
      hn_barrier_init(s.ready + 8 * i, HN_SPLITS > 1 ? 1 : 4 * HN_PANELS); /* each warp, when it has written its results */
    }
    hn_barrier_init_fence();
  }
  HN_SYNC();
  if (threadIdx.x < 128) {
    HN_REGISTERS_LESS(40);
    if (threadIdx.x == 0) load(&g, &s);
#if HN_SPLITS > 1
    HN_SYNC_WARP();
    hn_cluster_wait();
    hn_cluster_sync();
#else
    else if (threadIdx.x == 32) store(&g, &s);
#endif
  } else {
    HN_REGISTERS_MORE(232);
    consume(&g, &s, threadIdx.x / 128 - 1);
  }
}
