/* Two convolutions as one kernel on Hopper's tensor cores: any one as an implicit GEMM, and the 1x1 behind it.
 *
 * Rows are output pixels. A tile has all columns of the first product, so that its results, with their own
 * epilogue and rounded to HN_T, are whole rows of the second product's A: they stay in the registers where the first
 * product left them, which is where a product may read A from. The second product goes through y's columns 64 at a
 * time; while one such chunk is multiplied, the epilogue of the one before it runs.
 *
 * One warpgroup copies into two rings in shared memory, two or three multiply, each its part of the tile's rows. A stage
 * holds weights: a block of B of the first product, or a chunk's. A place holds rows: a block of A of the first product, or
 * a chunk's piece of the tensor that the epilogue adds, then the chunk's results, which leave from there. A stage is free
 * when it has been multiplied with, a place later; hence two rings. A thread each copies weights, copies rows and stores, so
 * that who multiplies waits for no store, and for no other warp. Compiled with what conv_wgmma.cu wants, where
 *   HN_STAGES, HN_PLACES of the two rings
 *   HN_BN        columns of the first product, all of them: 64, 128, 192, 256
 *   HN_ALTERNATE 0, HN_SPLIT 0, HN_OUT as HN_T, HN_A HN_A_IM2COL with HN_FIRST
 *   HN_FIRST     0: there is no first product, rows of A are read into the registers as they are (HN_A_MATRIX; HN_BN
 *                is K in whole 64s): for 1x1 convolutions of few channels to many, where memory is what takes time
 * and the generated epilogues: hn_inner_* of the first product, hn_epilogue_* of the second. */
#include "conv_chain_args.h"
#include "fragment_vectors.cuh"
#include "wgmma.cuh"

enum {
  CHUNK = 64,
  K_STEPS = HN_BN / 16,
  CHUNK_BYTES = GROUP_ROWS * CHUNK * 2,
  BLOCKS_OF_ROWS = HN_BN / 64 /* without a first product */
};

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

HN_FN void advance_place(ring *r) {
  if (++r->stage == HN_PLACES) r->stage = 0, r->phase ^= 1;
}

/* Nothing before this kernel has written weights. */
HN_FN void load_weights(const hn_conv_chain_args *g, const shared_map *s) {
  const hn_conv_wgmma_args *c = &g->conv;
  ring in = {0, 0};
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
#if HN_FIRST
    for (i32 block = 0; block < c->k_blocks; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      load_b(c, s, in.stage, block, 0, 0);
      advance(&in);
    }
#endif
    for (i32 chunk = 0; chunk < g->chunks; chunk++) {
      const u32 full = s->full + 8 * in.stage;
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      hn_barrier_expect(full, B_BYTES);
      hn_bulk_load(s->b + in.stage * B_BYTES, (const u8 *)g->last + (i64)chunk * B_BYTES, B_BYTES, full);
      advance(&in);
    }
  }
}

/* Where nothing is added, places still say when results may come. */
HN_FN void load_rows(const hn_conv_chain_args *g, const shared_map *s) {
  const hn_conv_wgmma_args *c = &g->conv;
  hn_map_prefetch(&c->a);
  ring in = {0, 0};
  HN_GRID_WAIT();
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
    const i32 row0 = tile * TILE_ROWS;
#if HN_FIRST
    i32 image_pixels = c->oh * c->ow;
    i32 n = row0 / image_pixels, r = row0 - n * image_pixels, y = r / c->ow, x = r - y * c->ow;
    i32 h0 = y * c->stride_h - c->pad_h, w0 = x * c->stride_w - c->pad_w;
    place at = place_of(c, 0);
    const i32 blocks = c->k_blocks;
#else
    const i32 blocks = BLOCKS_OF_ROWS;
#endif
    for (i32 block = 0; block < blocks; block++) {
      const u32 a = s->a + in.stage * A_BYTES, full = s->place_full + 8 * in.stage;
      hn_barrier_wait(s->place_empty + 8 * in.stage, in.phase ^ 1);
      hn_barrier_expect(full, A_BYTES);
#if HN_FIRST
      HN_UNROLL for (i32 u = 0; u < UNITS; u++) {
        /* Beyond the last tap: channels that do not exist are zeros. */
        u32 there = at.tap < c->taps;
        hn_tma_load_im2col(a + u * TILE_ROWS * A_ROW, &c->a, full, there ? at.c : c->cin, w0, h0, n, there ? at.dx : 0,
                           there ? at.dy : 0);
        next_place(c, &at);
      }
#else
      hn_tma_load_2d(a, &c->a, full, block * 64, row0);
#endif
      advance_place(&in);
    }
    for (i32 chunk = 0; chunk < g->chunks; chunk++) {
      const u32 full = s->place_full + 8 * in.stage;
      hn_barrier_wait(s->place_empty + 8 * in.stage, in.phase ^ 1);
      hn_barrier_expect(full, HN_STAGED ? A_BYTES : 0);
#if HN_STAGED
      hn_tma_load_2d(s->a + in.stage * A_BYTES, &c->staged, full, chunk * CHUNK, row0);
#endif
      advance_place(&in);
    }
  }
}

/* Of a chunk, when all warps have written theirs; its place is free when they have been read. */
HN_FN void store_results(const hn_conv_chain_args *g, const shared_map *s) {
  const hn_conv_wgmma_args *c = &g->conv;
  u32 place = 0, phases = 0; /* phases: a bit a place, as not every round of the ring has results in it */
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
    place = (place + (u32)(HN_FIRST ? c->k_blocks : BLOCKS_OF_ROWS)) % HN_PLACES;
    for (i32 chunk = 0; chunk < g->chunks; chunk++) {
      hn_barrier_wait(s->arrived + 8 * place, phases >> place & 1);
      phases ^= 1u << place;
      hn_tma_store_2d(&c->out, s->a + place * A_BYTES, chunk * CHUNK, tile * TILE_ROWS);
      hn_bulk_commit();
      HN_BULK_WAIT_READ(0);
      HN_UNROLL for (u32 i = 0; i < HN_GROUPS; i++) hn_barrier_arrive(s->place_empty + 8 * place); /* for each warpgroup */
      if (++place == HN_PLACES) place = 0;
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

/* Epilogue of a chunk, whose results stay in the place of what is added. What is read of 32 columns is on its way
 * together. */
HN_FN void finish_chunk(const hn_conv_chain_args *g, const shared_map *s, float d[HN_WM][CHUNK / 2], ring *rows_at, i32 chunk,
                        i32 row0, u32 group) {
  const hn_conv_wgmma_args *c = &g->conv;
  const u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, row = warp * 16 + (lane & 15);
  const u32 at_row = s->a + rows_at->stage * A_BYTES + group * CHUNK_BYTES + row * 128;
  hn_barrier_wait(s->place_full + 8 * rows_at->stage, rows_at->phase);
  HN_UNROLL for (u32 j = 0; j < CHUNK / 8; j += 4) {
    float vectors[2][HN_EPILOGUE_VECTORS + 1][4];
    u32 place[2];
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      get_vectors(vectors[i], HN_EPILOGUE_VECTORS, s->kept, chain_pitch(g), (u32)chunk * (CHUNK / 4) + (j + 2 * i) * 2 + (lane & 3));
      place[i] = at_row + (((j + 2 * i + lane / 16) ^ (row & 7)) << 4);
    }
#if HN_STAGED
    hn_u4 added[2][HN_WM];
    HN_UNROLL for (u32 i = 0; i < 2; i++)
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) added[i][m] = hn_matrix_load(place[i] + m * 64 * 128);
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
        hn_matrix_store(place[i] + m * 64 * 128, v);
      }
    }
  }
  hn_async_fence();
  HN_SYNC_WARP();
  if (lane == 0) hn_barrier_arrive(s->arrived + 8 * rows_at->stage);
  advance_place(rows_at);
}

#if HN_FIRST
/* The first product of a tile, with its epilogue, as the second one's A. */
HN_FN void rows_of_tile(const hn_conv_chain_args *g, const shared_map *s, ring *in, ring *rows_at, u32 a[HN_WM][K_STEPS][4],
                        u32 group) {
  const hn_conv_wgmma_args *c = &g->conv;
  u32 t = threadIdx.x & 127, lane = t & 31;
  float sum[HN_WM][HN_BN / 2];
  HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
    HN_UNROLL for (u32 i = 0; i < HN_BN / 2; i++) sum[m][i] = 0; /* so that it need not live until here */
  }
  for (i32 block = 0; block < c->k_blocks; block++) {
    hn_barrier_wait(s->full + 8 * in->stage, in->phase);
    hn_barrier_wait(s->place_full + 8 * rows_at->stage, rows_at->phase);
    multiply(sum, s->a + rows_at->stage * A_BYTES + group * GROUP_ROWS * A_ROW, s->b + in->stage * B_BYTES, 1);
    HN_WGMMA_WAIT(0); /* the other warpgroups' products go on; what waits here is room for copies */
    if (t == 0) {
      hn_barrier_arrive(s->empty + 8 * in->stage);
      hn_barrier_arrive(s->place_empty + 8 * rows_at->stage);
    }
    advance(in), advance_place(rows_at);
  }
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
HN_FN void rows_of_tile(const hn_conv_chain_args *g, const shared_map *s, ring *in, ring *rows_at, u32 a[HN_WM][K_STEPS][4],
                        u32 group) {
  u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31;
  (void)g, (void)in;
  HN_UNROLL for (u32 block = 0; block < BLOCKS_OF_ROWS; block++) {
    hn_barrier_wait(s->place_full + 8 * rows_at->stage, rows_at->phase);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      u32 row = m * 64 + warp * 16 + (lane & 15), at = s->a + rows_at->stage * A_BYTES + group * CHUNK_BYTES + row * 128;
      HN_UNROLL for (u32 k = 0; k < 4; k++) {
        hn_u4 v = hn_matrix_load(at + (((2 * k + lane / 16) ^ (row & 7)) << 4));
        HN_UNROLL for (i32 i = 0; i < 4; i++) a[m][block * 4 + k][i] = v.v[i];
      }
    }
    hn_sync_some(1 + group, 128);
    if (t == 0) hn_barrier_arrive(s->place_empty + 8 * rows_at->stage);
    advance_place(rows_at);
  }
}
#endif

/* A chunk's product has ended: its weights may go. */
HN_FN void end_product(const shared_map *s, ring *in) {
  HN_WGMMA_WAIT(0);
  if ((threadIdx.x & 127) == 0) hn_barrier_arrive(s->empty + 8 * in->stage);
  advance(in);
}

HN_FN void consume_chain(const hn_conv_chain_args *g, const shared_map *s, u32 group) {
  const hn_conv_wgmma_args *c = &g->conv;
  ring in = {0, 0}, rows_at = {0, 0};
  HN_GRID_WAIT();
  fill_vectors(g, s);
  for (i32 tile = (i32)blockIdx.x; tile < c->tiles; tile += (i32)gridDim.x) {
    i32 row0 = tile * TILE_ROWS + (i32)group * GROUP_ROWS;
    u32 a[HN_WM][K_STEPS][4];
    rows_of_tile(g, s, &in, &rows_at, a, group);
    float even[HN_WM][CHUNK / 2], odd[HN_WM][CHUNK / 2];
    hn_barrier_wait(s->full + 8 * in.stage, in.phase);
    begin(even, a, s->b + in.stage * B_BYTES);
    for (i32 chunk = 0;; chunk += 2) {
      end_product(s, &in);
      if (chunk + 1 >= g->chunks) {
        finish_chunk(g, s, even, &rows_at, chunk, row0, group);
        break;
      }
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      begin(odd, a, s->b + in.stage * B_BYTES);
      finish_chunk(g, s, even, &rows_at, chunk, row0, group);
      end_product(s, &in);
      if (chunk + 2 >= g->chunks) {
        finish_chunk(g, s, odd, &rows_at, chunk + 1, row0, group);
        break;
      }
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      begin(even, a, s->b + in.stage * B_BYTES);
      finish_chunk(g, s, odd, &rows_at, chunk + 1, row0, group);
    }
  }
}

HN_KERNEL_BOUNDS(conv_chain, hn_conv_chain_args, g, THREADS, 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  u32 base = hn_shared_address(memory);
  shared_map s;
  s.a = base;
  s.b = s.a + HN_PLACES * A_BYTES;
  s.kept = s.b + HN_STAGES * B_BYTES;
  s.table = s.kept + HN_EPILOGUE_VECTORS * chain_pitch(&g);
#if HN_FIRST
  s.full = s.table + HN_INNER_VECTORS * HN_BN * 4;
#else
  s.full = s.table;
#endif
  s.empty = s.full + 8 * HN_STAGES;
  s.place_full = s.empty + 8 * HN_STAGES;
  s.place_empty = s.place_full + 8 * HN_PLACES;
  s.arrived = s.place_empty + 8 * HN_PLACES;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_STAGES; i++) {
      hn_barrier_init(s.full + 8 * i, 1);
      hn_barrier_init(s.empty + 8 * i, HN_GROUPS);
    }
    for (u32 i = 0; i < HN_PLACES; i++) {
      hn_barrier_init(s.place_full + 8 * i, 1);
      hn_barrier_init(s.place_empty + 8 * i, HN_GROUPS);
      hn_barrier_init(s.arrived + 8 * i, HN_GROUPS * 4); /* each warp, when it has written its results */
    }
    hn_barrier_init_fence();
  }
  HN_SYNC();
  u32 group = threadIdx.x / 128;
  if (group == 0) {
    HN_REGISTERS_LESS(40);
    if (threadIdx.x == 0) load_weights(&g, &s);
    else if (threadIdx.x == 32) load_rows(&g, &s);
    else if (threadIdx.x == 64) store_results(&g, &s);
  } else {
    HN_REGISTERS_MORE(HN_GROUPS == 2 ? 232 : 152);
    consume_chain(&g, &s, group - 1);
  }
}
