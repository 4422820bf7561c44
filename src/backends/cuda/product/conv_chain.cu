/* Two convolutions as one kernel on Hopper's tensor cores: any one as an implicit GEMM, and the 1x1 behind it.
 *
 * Rows are output pixels. A tile has all columns of the first product, so that its results, with their own
 * epilogue and rounded to HN_T, are whole rows of the second product's A: they stay in the registers where the first
 * product left them, which is where a product may read A from. The second product goes through y's columns 64 at a
 * time; while one such chunk is multiplied, the epilogue of the one before it runs.
 *
 * One warpgroup copies into a ring in shared memory, two or three multiply, each its part of the tile's rows. A stage of the
 * ring holds a block of A and of B of the first product, or a chunk's weights (as many bytes as B) and its piece of
 * the tensor that the epilogue adds (as many as A). Compiled with what conv_wgmma.cu wants, where
 *   HN_BN        columns of the first product, all of them: 64, 128, 192, 256
 *   HN_ALTERNATE 0, HN_SPLIT 0, HN_OUT as HN_T, HN_A HN_A_IM2COL with HN_FIRST
 *   HN_BUFFERS   2, with HN_FIRST 0
 *   HN_FIRST     0: there is no first product, rows of A are read into the registers as they are (HN_A_MATRIX; HN_BN
 *                is K in whole 64s): for 1x1 convolutions of few channels to many, where memory is what takes time
 * and the generated epilogues: hn_inner_* of the first product, hn_epilogue_* of the second. */
#include "conv_chain_args.h"
#include "fragment_vectors.cuh"
#include "wgmma.cuh"

enum { CHUNK = 64, K_STEPS = HN_BN / 16, CHUNK_BYTES = GROUP_ROWS * CHUNK * 2 };

/* The vectors of both epilogues lie in shared memory from the beginning: those of the first product, HN_BN columns each,
 * and those of the last one, whole chunks. */
HN_FN u32 chain_pitch(const hn_conv_chain_args *g) { return (u32)g->chunks * CHUNK * 4; }
HN_FN void fill_vectors(const hn_conv_chain_args *g, const shared_map *s) {
  const u32 t = threadIdx.x - 128;
#if HN_FIRST
  if (t < HN_BN / 4) {
    float u[HN_INNER_VECTORS + 1][4];
    hn_inner_fragment_vectors(u, column_of_quarter(t), &g->inner);
    put_vectors(u, HN_INNER_VECTORS, s->table, HN_BN * 4, t);
  }
#endif
  for (u32 quarter = t; quarter < (u32)g->chunks * CHUNK / 4; quarter += THREADS - 128) {
    float u[HN_EPILOGUE_VECTORS + 1][4];
    hn_epilogue_fragment_vectors(u, column_of_quarter(quarter), &g->conv.epilogue);
    put_vectors(u, HN_EPILOGUE_VECTORS, s->kept, chain_pitch(g), quarter);
  }
  hn_sync_some(1 + HN_GROUPS, THREADS - 128);
}

HN_PASTE(HN_DEFINE_WGMMA_REGISTERS_, 64)(wgmma_registers, HN_PASTE(HN_MMA_, HN_T))

HN_FN void produce_chain(const hn_conv_chain_args *g, const shared_map *s) {
  const hn_conv_wgmma_args *c = &g->conv;
  if (threadIdx.x != 0) return;
  hn_map_prefetch(&c->a);
  ring in = {0, 0};
  HN_GRID_WAIT();
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
    i32 row0 = tile * TILE_ROWS;
#if HN_FIRST
    i32 image_pixels = c->oh * c->ow;
    i32 n = row0 / image_pixels, r = row0 - n * image_pixels, y = r / c->ow, x = r - y * c->ow;
    i32 h0 = y * c->stride_h - c->pad_h, w0 = x * c->stride_w - c->pad_w;
    place at = place_of(c, 0);
    for (i32 block = 0; block < c->k_blocks; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      load_b(c, s, in.stage, block, 0, A_BYTES);
      u32 a = s->a + in.stage * A_BYTES, full = s->full + 8 * in.stage;
      HN_UNROLL for (i32 u = 0; u < UNITS; u++) {
        /* Beyond the last tap: channels that do not exist are zeros. */
        u32 there = at.tap < c->taps;
        hn_tma_load_im2col(a + u * TILE_ROWS * A_ROW, &c->a, full, there ? at.c : c->cin, w0, h0, n, there ? at.dx : 0,
                           there ? at.dy : 0);
        next_place(c, &at);
      }
      advance(&in);
    }
#else
    for (i32 block = 0; block < HN_BN / 64; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      hn_barrier_expect(s->full + 8 * in.stage, A_BYTES);
      hn_tma_load_2d(s->a + in.stage * A_BYTES, &c->a, s->full + 8 * in.stage, block * 64, row0);
      advance(&in);
    }
#endif
    for (i32 chunk = 0; chunk < g->chunks; chunk++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      u32 full = s->full + 8 * in.stage;
      hn_barrier_expect(full, B_BYTES + (HN_STAGED ? A_BYTES : 0));
      hn_bulk_load(s->b + in.stage * B_BYTES, (const u8 *)g->last + (i64)chunk * B_BYTES, B_BYTES, full);
#if HN_STAGED
      hn_tma_load_2d(s->a + in.stage * A_BYTES, &c->staged, full, chunk * CHUNK, row0);
#endif
      advance(&in);
    }
  }
}

/* Starts the product of a chunk. */
HN_FN void begin(float d[HN_WM][CHUNK / 2], u32 a[HN_WM][K_STEPS][4], u32 b) {
  hn_wgmma_fence();
  HN_UNROLL for (u32 k = 0; k < K_STEPS; k++) {
    u64 at = hn_wgmma_operand(b + k / 4 * (CHUNK * 128) + k % 4 * 32, 128);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      if (k == 0) wgmma_registers_first(d[m], a[m][k], at);
      else wgmma_registers(d[m], a[m][k], at);
    }
  }
  hn_wgmma_commit();
}

/* Epilogue and store of a chunk. What is read of 32 columns is on its way together. Behind a first product (HN_BUFFERS
 * 0) results take the place of what is added, whose stage is free when they have left: more stages are worth more
 * there than places of the results' own. held: the stage that is not free yet, HN_STAGES for none; with HN_BUFFERS the
 * place that is next. */
HN_FN void finish_chunk(const hn_conv_chain_args *g, const shared_map *s, float d[HN_WM][CHUNK / 2], u32 stage, i32 chunk,
                        i32 row0, u32 group, u32 *held) {
  const hn_conv_wgmma_args *c = &g->conv;
  const u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, row = warp * 16 + (lane & 15);
  const u32 from = s->a + stage * A_BYTES + group * CHUNK_BYTES + row * 128;
  const u32 out = HN_BUFFERS ? s->staging + (group * 2 + *held) * CHUNK_BYTES + row * 128 : from;
  HN_UNROLL for (u32 j = 0; j < CHUNK / 8; j += 4) {
    float vectors[2][HN_EPILOGUE_VECTORS + 1][4];
    u32 place[2];
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      get_vectors(vectors[i], HN_EPILOGUE_VECTORS, s->kept, chain_pitch(g), (u32)chunk * (CHUNK / 4) + (j + 2 * i) * 2 + (lane & 3));
      place[i] = ((j + 2 * i + lane / 16) ^ (row & 7)) << 4;
    }
#if HN_STAGED
    hn_u4 added[2][HN_WM];
    HN_UNROLL for (u32 i = 0; i < 2; i++)
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) added[i][m] = hn_matrix_load(from + m * 64 * 128 + place[i]);
#endif
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      const i32 channel = chunk * CHUNK + (i32)((j + 2 * i) * 8 + 2 * (lane & 3));
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
        float x[8], other[8];
        HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = d[m][(j + 2 * i) * 4 + k];
        const i32 pixel = row0 + (i32)(m * 64 + warp * 16 + lane / 4), rows = pixel + 8 < c->pixels ? 2 : pixel < c->pixels;
        const i64 at = (i64)pixel * c->y_pixel + channel, down = 8 * (i64)c->y_pixel;
#if HN_STAGED
        HN_PASTE(unpack_, HN_T)(added[i][m].v, other);
#endif
        hn_epilogue_fragment(x, vectors[i], other, channel, at, down, rows, &c->epilogue);
        hn_u4 v;
        HN_UNROLL for (i32 k = 0; k < 4; k++) v.v[k] = HN_PASTE(HN_PACK_, HN_OUT)(x[2 * k], x[2 * k + 1]);
        hn_matrix_store(out + m * 64 * 128 + place[i], v);
      }
    }
  }
  hn_async_fence();
  if (HN_BUFFERS && t == 0) HN_BULK_WAIT_READ(0); /* the next chunk's place is free, then */
  hn_sync_some(1 + group, 128);
  if (t == 0) {
    if (HN_BUFFERS) hn_barrier_arrive(s->empty + 8 * stage);
    hn_tma_store_2d(&c->out, out - row * 128, chunk * CHUNK, row0);
    hn_bulk_commit();
    if (!HN_BUFFERS && *held < HN_STAGES) {
      HN_BULK_WAIT_READ(1);
      hn_barrier_arrive(s->empty + 8 * *held);
    }
  }
  *held = HN_BUFFERS ? *held ^ 1 : stage;
}

#if HN_FIRST
/* The first product of a tile, with its epilogue, as the second one's A. */
HN_FN void rows_of_tile(const hn_conv_chain_args *g, const shared_map *s, ring *in, u32 a[HN_WM][K_STEPS][4], u32 group,
                        u32 *held) {
  const hn_conv_wgmma_args *c = &g->conv;
  u32 t = threadIdx.x & 127, lane = t & 31, before = 0;
  float sum[HN_WM][HN_BN / 2];
  HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
    HN_UNROLL for (u32 i = 0; i < HN_BN / 2; i++) sum[m][i] = 0; /* so that it need not live until here */
  }
  for (i32 block = 0; block < c->k_blocks; block++) {
    hn_barrier_wait(s->full + 8 * in->stage, in->phase);
    multiply(sum, s->a + in->stage * A_BYTES + group * GROUP_ROWS * A_ROW, s->b + in->stage * B_BYTES, 1);
    if (block > 0) {
      HN_WGMMA_WAIT(1);
      if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
    } else if (*held < HN_STAGES) { /* of the tile before */
      if (t == 0) {
        HN_BULK_WAIT_READ(0);
        hn_barrier_arrive(s->empty + 8 * *held);
      }
      *held = HN_STAGES;
    }
    before = in->stage;
    advance(in);
  }
  HN_WGMMA_WAIT(0);
  if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
  HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j += 2) {
    const i32 channel = (i32)(j * 8 + 2 * (lane & 3));
    float vectors[HN_INNER_VECTORS + 1][4];
    get_vectors(vectors, HN_INNER_VECTORS, s->table, HN_BN * 4, j * 2 + (lane & 3));
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      float x[8];
      HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = sum[m][j * 4 + k];
      hn_inner_fragment(x, vectors, x, channel, 0, 0, 2, &g->inner);
      HN_UNROLL for (i32 k = 0; k < 4; k++) a[m][j / 2][k] = HN_PASTE(HN_PACK_, HN_T)(x[2 * k], x[2 * k + 1]);
    }
  }
}
#else
/* Rows of a tile as they are. */
HN_FN void rows_of_tile(const hn_conv_chain_args *g, const shared_map *s, ring *in, u32 a[HN_WM][K_STEPS][4], u32 group,
                        u32 *held) {
  u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31;
  (void)g, (void)held;
  HN_UNROLL for (u32 block = 0; block < HN_BN / 64; block++) {
    hn_barrier_wait(s->full + 8 * in->stage, in->phase);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      u32 row = m * 64 + warp * 16 + (lane & 15), at = s->a + in->stage * A_BYTES + group * CHUNK_BYTES + row * 128;
      HN_UNROLL for (u32 k = 0; k < 4; k++) {
        hn_u4 v = hn_matrix_load(at + (((2 * k + lane / 16) ^ (row & 7)) << 4));
        HN_UNROLL for (i32 i = 0; i < 4; i++) a[m][block * 4 + k][i] = v.v[i];
      }
    }
    hn_sync_some(1 + group, 128);
    if (t == 0) hn_barrier_arrive(s->empty + 8 * in->stage);
    advance(in);
  }
}
#endif

HN_FN void consume_chain(const hn_conv_chain_args *g, const shared_map *s, u32 group) {
  const hn_conv_wgmma_args *c = &g->conv;
  u32 t = threadIdx.x & 127, held = HN_BUFFERS ? 0 : HN_STAGES;
  ring in = {0, 0};
  HN_GRID_WAIT();
  fill_vectors(g, s);
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
    i32 row0 = tile * TILE_ROWS + (i32)group * GROUP_ROWS;
    u32 a[HN_WM][K_STEPS][4];
    rows_of_tile(g, s, &in, a, group, &held);
    float even[HN_WM][CHUNK / 2], odd[HN_WM][CHUNK / 2];
    hn_barrier_wait(s->full + 8 * in.stage, in.phase);
    begin(even, a, s->b + in.stage * B_BYTES);
    for (i32 chunk = 0;; chunk += 2) {
      u32 stage = in.stage;
      advance(&in);
      HN_WGMMA_WAIT(0);
      if (chunk + 1 >= g->chunks) {
        finish_chunk(g, s, even, stage, chunk, row0, group, &held);
        break;
      }
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      begin(odd, a, s->b + in.stage * B_BYTES);
      finish_chunk(g, s, even, stage, chunk, row0, group, &held);
      stage = in.stage;
      advance(&in);
      HN_WGMMA_WAIT(0);
      if (chunk + 2 >= g->chunks) {
        finish_chunk(g, s, odd, stage, chunk + 1, row0, group, &held);
        break;
      }
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      begin(even, a, s->b + in.stage * B_BYTES);
      finish_chunk(g, s, odd, stage, chunk + 1, row0, group, &held);
    }
  }
  if (t == 0) HN_BULK_WAIT_READ(0);
}

HN_KERNEL_BOUNDS(conv_chain, hn_conv_chain_args, g, THREADS, 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  u32 base = hn_shared_address(memory);
  shared_map s;
  s.a = base;
  s.b = s.a + HN_STAGES * A_BYTES;
  s.staging = s.b + HN_STAGES * B_BYTES;
  s.kept = s.staging + HN_BUFFERS * HN_GROUPS * CHUNK_BYTES;
  s.table = s.kept + HN_EPILOGUE_VECTORS * chain_pitch(&g);
#if HN_FIRST
  s.full = s.table + HN_INNER_VECTORS * HN_BN * 4;
#else
  s.full = s.table;
#endif
  s.empty = s.full + 8 * HN_STAGES;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_STAGES; i++) {
      hn_barrier_init(s.full + 8 * i, 1);
      hn_barrier_init(s.empty + 8 * i, HN_GROUPS);
    }
    hn_barrier_init_fence();
  }
  HN_SYNC();
  u32 group = threadIdx.x / 128;
  if (group == 0) {
    HN_REGISTERS_LESS(40);
    produce_chain(&g, &s);
  } else {
    HN_REGISTERS_MORE(HN_GROUPS == 2 ? 232 : 152);
    consume_chain(&g, &s, group - 1);
  }
}
