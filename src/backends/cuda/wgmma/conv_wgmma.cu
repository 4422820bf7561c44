/* Convolution (and matrix product) as an implicit GEMM on Hopper's tensor cores.
 *
 * Rows are output pixels, columns output channels, K runs over (tap, channel) in blocks of 64. One warpgroup
 * copies blocks of A and B into a ring in shared memory, two or three warpgroups multiply. Blocks of threads are
 * persistent: tile after tile. Compiled with
 *   HN_T         f16 or bf16; HN_OUT: f16, bf16 or f32
 *   HN_WM        tiles of 64 rows that a warpgroup multiplies with each block of B: 1 or 2
 *   HN_BN        columns of a tile: 32 (HN_SPLIT), 64, 128, 256
 *   HN_GROUPS    warpgroups that multiply: 2; 3 where they share a tile's rows
 *   HN_ALTERNATE 1: the two warpgroups take turns in tiles, so that one stores while the other multiplies;
 *                0: they share a tile's rows
 *   HN_SPLIT     1: a tile of 64 rows belongs to a cluster, whose blocks (and the warpgroups in them) divide K
 *                and add up what they got in a fixed order
 *   HN_STAGES    blocks in the ring (HN_SPLIT: an even number)
 *   HN_BUFFERS   1 or 2 tiles of results of each warpgroup in shared memory
 *   HN_A         how A comes: HN_A_MATRIX, HN_A_IM2COL, HN_A_GATHER
 *   HN_UNIT      channels that one copy of A takes: 64, 32 or 16 (HN_A_GATHER: 8)
 *   HN_TF32_PARTS     of f32 (HN_T and HN_OUT f32, in tiles that warpgroups share): numbers of tf32 that weights are stored as,
 *                1, or 2 whose three products are of f32's order; HN_ADDED: the operand of the epilogue that is a tensor
 *                as y is, read ahead of the sums' way out
 *   HN_STAGED    1: one tensor of the epilogue (of codes: what is added) comes through shared memory ahead of time
 * and the generated epilogue (wgmma_floats.cuh). Or, of codes (wgmma_codes.cuh), HN_T u8 or i8 and HN_CODE in place of
 * HN_OUT; channels and blocks of K are twice as many then, and HN_OUTSIDE: gathered taps outside the image read
 * g->codes.outside in place of zeros; HN_BORDER: what zeros there lack is added to the sums. */
#include "conv_wgmma_args.h"
#include "wgmma.cuh"
#ifdef HN_CODE
#include "wgmma_codes.cuh"
#else
#include "wgmma_floats.cuh"
#endif

#if HN_SPLIT

HN_FN void consume(const hn_conv_wgmma_args *g, const shared_map *s, u32 group) {
  u32 t = threadIdx.x & 127, lane = t & 31, row = t / 32 * 16 + lane / 4;
  work mine = work_of(g);
  HN_GRID_WAIT();
  ring in = {group, 0};
  hn_sum d[1][HN_BN / 2];
  i32 first = mine.k + (i32)group;
  for (i32 block = first; block < mine.k_end; block += 2) {
    hn_barrier_wait(s->full + 8 * in.stage, in.phase);
    multiply(d, s->a + in.stage * A_BYTES, s->b + in.stage * B_BYTES, block > first);
    HN_WGMMA_WAIT(0);
    if (t == 0) hn_barrier_arrive(s->empty + 8 * in.stage);
    skip(&in, 2);
  }
  if (first >= mine.k_end) { /* nothing was left for this warpgroup */
    HN_UNROLL for (u32 i = 0; i < HN_BN / 2; i++) d[0][i] = 0;
  }
  put_partial(s->staging + group * STAGING + row * PARTIAL_ROW, lane & 3, d[0]);
}

/* Every block of the cluster adds up its share of the tile, by its 256 threads that multiplied. */
HN_FN void reduce(const hn_conv_wgmma_args *g, const shared_map *s) {
  u32 rank = hn_cluster_rank(), size = hn_cluster_size();
  i32 tile = (i32)(blockIdx.x / size), row0 = tile / g->n_tiles * 64, column0 = tile % g->n_tiles * HN_BN;
  enum { EIGHTS = 64 * HN_BN / 8 };
  for (u32 i = EIGHTS * rank / size + threadIdx.x - 128; i < EIGHTS * (rank + 1) / size; i += 256) {
    u32 row = i / (HN_BN / 8), eight = i % (HN_BN / 8), at = s->staging + row * PARTIAL_ROW + eight * 32;
    hn_sum x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (u32 r = 0; r < size; r++) {
      u32 from = hn_cluster_address(at, r);
      HN_UNROLL for (u32 p = 0; p < 2; p++) {
        hn_u4 low = hn_cluster_ld16(from + p * STAGING), high = hn_cluster_ld16(from + p * STAGING + 16);
        HN_UNROLL for (u32 k = 0; k < 4; k++) x[k] += hn_sum_of(low.v[k]), x[4 + k] += hn_sum_of(high.v[k]);
      }
    }
    finish(g, x, row0 + (i32)row, column0 + (i32)eight * 8);
  }
}

#else

/* A tile: its number, and its first row and column for a warpgroup. */
typedef struct corner {
  i32 tile, row, column;
} corner;
HN_FN corner corner_of(const hn_conv_wgmma_args *g, i32 tile) {
  const corner c = {tile, tile / g->n_tiles * TILE_ROWS, tile % g->n_tiles * HN_BN};
  return c;
}
HN_FN corner corner_after(const hn_conv_wgmma_args *g, const corner *c, const corner *step) {
  corner n = {c->tile + step->tile, c->row + step->row, c->column + step->column};
  if (n.column >= g->n_tiles * HN_BN) n.column -= g->n_tiles * HN_BN, n.row += TILE_ROWS;
  return n;
}

HN_FN void load_staged(const hn_conv_wgmma_args *g, u32 to, u32 arrived, i32 row0, i32 column0) {
  hn_barrier_expect(arrived, STAGING);
  HN_UNROLL for (i32 p = 0; p < HN_BN; p += PANEL)
    hn_tma_load_2d(to + p * GROUP_ROWS * HN_BYTES, &g->staged, arrived, column0 + p, row0);
}

HN_FN void consume(const hn_conv_wgmma_args *g, const shared_map *s, u32 group) {
  u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, round = 0;
  const u32 kept = s->kept + group * HN_KEPT * HN_BN * 4;
  const corner step = corner_of(g, (i32)gridDim.x * (HN_ALTERNATE ? 2 : 1));
  corner at = corner_of(g, (i32)(blockIdx.x + (HN_ALTERNATE ? gridDim.x * group : 0)));
  if (!HN_ALTERNATE) at.row += (i32)group * GROUP_ROWS;
  ring in = {0, 0};
  if (HN_ALTERNATE && group) skip(&in, (u32)g->k_blocks);
  HN_GRID_WAIT();
#if HN_STAGED && HN_BUFFERS == 2
  if (t == 0 && at.tile < g->tiles)
    load_staged(g, s->staging + group * 2 * STAGING, s->arrived + 16 * group, at.row, at.column);
#endif
  for (; at.tile < g->tiles; round++) {
    const i32 row0 = at.row, column0 = at.column;
    u32 buffer = HN_BUFFERS == 2 ? group * 2 + (round & 1) : group;
    u32 staging = s->staging + buffer * STAGING;
#if HN_STAGED && HN_BUFFERS == 1
    if (t == 0) {
      HN_BULK_WAIT_READ(0);
      load_staged(g, staging, s->arrived + 8 * buffer, row0, column0);
    }
#endif
    /* A warpgroup must not be a whole ring ahead of the other: a barrier tells phases apart by parity only. */
    if (HN_ALTERNATE && (group || round)) hn_barrier_wait(s->turn + 8 * group, (round & 1) ^ !group);
#if HN_KEPT
    vectors vector;
    ask_vectors(g, &vector, column0, t);
#endif
    hn_sum d[HN_WM][HN_BN / 2];
#if HN_BYTES == 4
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      HN_UNROLL for (u32 i = 0; i < HN_BN / 2; i++) d[m][i] = 0;
    }
    for (i32 block = 0; block < g->k_blocks; block++) {
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      multiply(d, s->a + in.stage * A_BYTES, s->b + in.stage * B_BYTES, group * GROUP_ROWS + warp * 16 + (lane & 15), lane);
      HN_WGMMA_WAIT(0); /* A's registers are wanted again; the other warpgroups' products go on */
      if (t == 0) hn_barrier_arrive(s->empty + 8 * in.stage);
      advance(&in);
    }
#else
    u32 before = 0;
    for (i32 block = 0; block < g->k_blocks; block++) {
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      multiply(d, s->a + in.stage * A_BYTES + (HN_ALTERNATE ? 0 : group * GROUP_ROWS * A_ROW), s->b + in.stage * B_BYTES, block > 0);
      if (block > 0) {
        HN_WGMMA_WAIT(1);
        if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
      }
      before = in.stage;
      advance(&in);
    }
    if (HN_ALTERNATE) {
      if (t == 0) hn_barrier_arrive(s->turn + 8 * (group ^ 1));
      skip(&in, (u32)g->k_blocks);
    }
    HN_WGMMA_WAIT(0);
    if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
#endif

    at = corner_after(g, &at, &step);
#if HN_STAGED
    if (HN_BUFFERS == 2 && t == 0 && at.tile < g->tiles) { /* the next tile's, where the last one's results were */
      HN_BULK_WAIT_READ(0);
      load_staged(g, s->staging + (buffer ^ 1) * STAGING, s->arrived + 8 * (buffer ^ 1), at.row, at.column);
    }
    hn_barrier_wait(s->arrived + 8 * buffer, HN_BUFFERS == 2 ? round >> 1 & 1 : round & 1);
#elif HN_STORE_STAGED
    if (t == 0) HN_BULK_WAIT_READ(HN_BUFFERS - 1);
#endif
#if HN_KEPT
    keep_vectors(&vector, kept, t);
#endif
    if (HN_KEPT || !HN_STAGED) hn_sync_some(1 + group, 128);
    finish_tile(g, d, staging, kept, row0, column0, warp, lane);
    hn_async_fence();
    hn_sync_some(1 + group, 128);
#if HN_STORE_STAGED
    if (t == 0) {
      HN_UNROLL for (i32 p = 0; p < HN_BN; p += PANEL)
        hn_tma_store_2d(&g->out, staging + p * GROUP_ROWS * HN_BYTES, column0 + p, row0);
      hn_bulk_commit();
    }
#endif
  }
  if (HN_STORE_STAGED && t == 0) HN_BULK_WAIT_READ(0);
}

#endif

HN_KERNEL_BOUNDS(conv_wgmma, hn_conv_wgmma_args, g, THREADS, HN_SPLIT ? 2 : 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  u32 base = hn_shared_address(memory);
  shared_map s;
  s.a = base;
  s.b = s.a + HN_STAGES * A_BYTES;
  s.staging = s.b + HN_STAGES * B_BYTES;
  s.kept = s.staging + HN_GROUPS * HN_BUFFERS * STAGING;
  s.full = s.kept + HN_GROUPS * HN_KEPT * HN_BN * 4;
  s.empty = s.full + 8 * HN_STAGES;
  s.arrived = s.empty + 8 * HN_STAGES;
  s.turn = s.arrived + 8 * 2 * HN_GROUPS;
  s.table = s.turn + 8 * 2;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_STAGES; i++) {
      hn_barrier_init(s.full + 8 * i, HN_A == HN_A_GATHER ? 129 : 1);
      hn_barrier_init(s.empty + 8 * i, HN_ALTERNATE || HN_SPLIT ? 1 : HN_GROUPS);
    }
    for (u32 i = 0; i < 2 * HN_GROUPS + 2; i++) hn_barrier_init(s.arrived + 8 * i, 1); /* and s.turn */
    hn_barrier_init_fence();
  }
  HN_SYNC();
  u32 group = threadIdx.x / 128;
#if HN_SPLIT
  if (group == 0) {
    produce(&g, &s);
    HN_SYNC_WARP(); /* one thread worked alone */
    hn_cluster_sync();
  } else {
    consume(&g, &s, group - 1);
    hn_cluster_sync();
    reduce(&g, &s);
  }
  hn_cluster_sync(); /* the others may still be reading here */
#else
  if (group == 0) {
    HN_REGISTERS_LESS(56);
    produce(&g, &s);
  } else {
    HN_REGISTERS_MORE(HN_GROUPS == 2 ? 224 : 152);
    consume(&g, &s, group - 1);
  }
#endif
}
