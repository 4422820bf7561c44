/* What kernels on warpgroup products share: the ring of blocks of A and B in shared memory, who fills it, and one
 * block's product. The macros that it wants are those of conv_wgmma.cu. */
#ifndef HN_WGMMA_CUH
#define HN_WGMMA_CUH

#include "conv_wgmma_args.h"
#include "hopper.cuh"
#include "pairs.cuh"
#include "sums.cuh"

#define HN_A_MATRIX 0
#define HN_A_IM2COL 1
#define HN_A_GATHER 2

#ifdef HN_CODE
#define HN_MMA_u8 "u8.s8"
#define HN_MMA_i8 "s8.s8"
HN_PASTE(HN_DEFINE_WGMMA_CODES_, HN_BN)(wgmma, HN_PASTE(HN_MMA_, HN_T))
#define HN_STORE_STAGED !HN_SPLIT
#define HN_BYTES 1 /* of an element of A and B, and of what is stored through shared memory */
#elif defined(HN_TF32_PARTS)
#define HN_STORE_STAGED 0
#define HN_BYTES 4
#else
#define HN_MMA_f16 "f16.f16"
#define HN_MMA_bf16 "bf16.bf16"
HN_PASTE(HN_DEFINE_WGMMA_, HN_BN)(wgmma, HN_PASTE(HN_MMA_, HN_T))
#define HN_STORE_STAGED (HN_PASTE(HN_IS_HALF_, HN_OUT) && !HN_SPLIT) /* through shared memory */
#define HN_BYTES 2
#endif
#ifndef HN_TF32_PARTS
#define HN_TF32_PARTS 1
#endif
#define HN_IS_HALF_f16 1
#define HN_IS_HALF_bf16 1
#define HN_IS_HALF_f32 0

enum {
  GROUP_ROWS = 64 * HN_WM,
  TILE_ROWS = HN_ALTERNATE || HN_SPLIT ? GROUP_ROWS : HN_GROUPS * GROUP_ROWS,
  THREADS = 128 * (1 + HN_GROUPS),
  A_BYTES = TILE_ROWS * 128,
  B_BYTES = HN_BN * 128 * HN_TF32_PARTS,
  K_BLOCK = 128 / HN_BYTES,                               /* of K */
  K_CHUNK = 16 / HN_BYTES,                                /* elements of 16 bytes */
  A_ROW = HN_A == HN_A_GATHER ? 128 : HN_UNIT * HN_BYTES, /* bytes of a row of a copy */
  UNITS = K_BLOCK / HN_UNIT,                              /* of a block of K */
  PARTIAL_ROW = (HN_BN + 8) * 4,                          /* of 32-bit sums, padded against bank conflicts */
  /* Of a warpgroup: panels of rows of 128 bytes on their way in and out, or sums. */
  STAGING = HN_SPLIT ? GROUP_ROWS * PARTIAL_ROW : HN_STORE_STAGED ? GROUP_ROWS * HN_BN * HN_BYTES : 0
};
/* Gathered blocks under way. The multiplying side lets go of a block when it has got the next one, so at most
 * HN_STAGES - 2. */
#define LAG (HN_STAGES > 4 ? 3 : HN_STAGES - 2)

typedef struct ring {
  u32 stage, phase;
} ring;
HN_FN void skip(ring *r, u32 blocks) {
  u32 s = r->stage + blocks;
  r->phase ^= s / HN_STAGES & 1, r->stage = s % HN_STAGES;
}
HN_FN void advance(ring *r) {
  if (++r->stage == HN_STAGES) r->stage = 0, r->phase ^= 1;
}

typedef struct shared_map {
  u32 a, b, staging, kept, full, empty, arrived, turn, table, place_full, place_empty; /* addresses */
} shared_map;

/* This block's tiles: from `first` on, each `step`-th; of each, blocks [k, k_end) of K. */
typedef struct work {
  i32 first, step, k, k_end;
} work;
HN_FN work work_of(const hn_conv_wgmma_args *g) {
#if HN_SPLIT
  u32 rank = hn_cluster_rank(), size = hn_cluster_size();
  work w = {(i32)(blockIdx.x / size), g->tiles, (i32)((u32)g->k_blocks * rank / size),
            (i32)((u32)g->k_blocks * (rank + 1) / size)};
#else
  work w = {(i32)blockIdx.x, (i32)gridDim.x, 0, g->k_blocks};
#endif
  return w;
}

HN_FN void load_b(const hn_conv_wgmma_args *g, const shared_map *s, u32 stage, i32 block, i32 n8, u32 a_bytes) {
  i32 here = g->n8 - n8 < HN_BN / 8 ? g->n8 - n8 : HN_BN / 8;
  u32 full = s->full + 8 * stage;
  hn_barrier_expect(full, a_bytes + HN_TF32_PARTS * (u32)here * 1024);
  HN_UNROLL for (i32 p = 0; p < HN_TF32_PARTS; p++)
    hn_bulk_load(s->b + stage * B_BYTES + (u32)p * (HN_BN * 128),
                 (const u8 *)g->weights + (((i64)block * HN_TF32_PARTS + p) * g->n8 + n8) * 1024, (u32)here * 1024, full);
}

/* Where in K: channel c (of HN_UNIT) of a tap. */
typedef struct place {
  i32 c, tap, column, dy, dx;
} place;
HN_FN place place_of(const hn_conv_wgmma_args *g, i32 block) {
  i32 units = (g->cin + HN_UNIT - 1) / HN_UNIT, unit = block * UNITS, tap = unit / units, row = tap / g->kw;
  place p = {(unit - tap * units) * HN_UNIT, tap, tap - row * g->kw, row * g->dilation_h, (tap - row * g->kw) * g->dilation_w};
  return p;
}
HN_FN void next_place(const hn_conv_wgmma_args *g, place *p) {
  p->c += HN_UNIT;
  if (p->c >= g->cin) {
    p->c = 0, p->tap++, p->dx += g->dilation_w;
    if (++p->column == g->kw) p->column = 0, p->dx = 0, p->dy += g->dilation_h;
  }
}

/* Weights come before the kernel in front of this one has ended: as many blocks as the ring has, of the first
 * tile. Returns how many. */
HN_FN i32 load_b_early(const hn_conv_wgmma_args *g, const shared_map *s, const work *mine, u32 a_bytes) {
  i32 n = mine->k_end - mine->k < HN_STAGES ? mine->k_end - mine->k : HN_STAGES;
  if (mine->first >= g->tiles) return 0;
  for (i32 i = 0; i < n; i++) load_b(g, s, (u32)i, mine->k + i, mine->first % g->n_tiles * (HN_BN / 8), a_bytes);
  return n;
}

#if HN_A == HN_A_GATHER
/* A by the threads of the warpgroup: 16 bytes of a tap's channels at a time. Where in x they lie, from the pixel
 * of the first tap on, stands in a table: distance in bytes; rows and columns. */
HN_FN void produce(const hn_conv_wgmma_args *g, const shared_map *s) {
  u32 t = threadIdx.x, pending = 0;
  ring in = {0, 0}, done = {0, 0};
  work mine = work_of(g);
  for (i32 i = (i32)t; i < g->k_blocks * 8; i += 128) {
    i32 units = g->cin / K_CHUNK, tap = i / units, dy = tap / g->kw, dx = (tap - dy * g->kw) * g->dilation_w;
    dy = tap < g->taps ? dy * g->dilation_h : 0x4000; /* beyond the last tap: outside of every image */
    i32 far = tap < g->taps ? ((dy * g->w + dx) * g->pixel + (i - tap * units) * K_CHUNK) * HN_BYTES : 0;
    hn_shared_st8(s->table + i * 8, (u32)far, (u32)dy << 16 | (u32)dx);
  }
  hn_sync_some(1 + HN_GROUPS, 128);
  i32 early = t == 0 ? load_b_early(g, s, &mine, 0) : 0;
  HN_GRID_WAIT();
  for (i32 tile = mine.first; tile < g->tiles; tile += mine.step) {
    i32 row0 = tile / g->n_tiles * TILE_ROWS, n8 = tile % g->n_tiles * (HN_BN / 8);
    enum { ROWS = (TILE_ROWS + 127) / 128 };
    i32 h0[ROWS], w0[ROWS];
    const u8 *origin[ROWS];
    HN_UNROLL for (i32 i = 0; i < ROWS; i++) {
      i32 p = row0 + (i32)t + 128 * i, image_pixels = g->oh * g->ow;
      i32 n = p / image_pixels, r = p - n * image_pixels, y = r / g->ow, x = r - y * g->ow;
      h0[i] = y * g->stride_h - g->pad_h;
      w0[i] = x * g->stride_w - g->pad_w;
      origin[i] = (const u8 *)g->x + (n * g->image + ((i64)h0[i] * g->w + w0[i]) * g->pixel) * HN_BYTES;
      if (p >= g->pixels) h0[i] = -(1 << 20); /* beyond the last: outside */
    }
    for (i32 block = mine.k; block < mine.k_end; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      if (t == 0) {
        if (early) early--;
        else load_b(g, s, in.stage, block, n8, 0);
      }
      u32 from = s->table + (u32)block * 64, to = s->a + in.stage * A_BYTES;
      HN_UNROLL for (u32 k = 0; k < 8; k++) {
        u32 far, place;
        hn_shared_ld8(from + 8 * k, &far, &place);
        HN_UNROLL for (i32 i = 0; i < ROWS; i++) {
          u32 row = t + 128 * i;
          u32 inside = (u32)(h0[i] + (i32)(place >> 16)) < (u32)g->h && (u32)(w0[i] + (i32)(place & 0xffff)) < (u32)g->w;
          if (row < TILE_ROWS)
#ifdef HN_OUTSIDE
            hn_cp_async16_near(to + row * 128 + ((k ^ (row & 7)) << 4),
                               inside ? origin[i] + (i32)far : (const u8 *)g->codes.outside, 16);
#else
            hn_cp_async16_near(to + row * 128 + ((k ^ (row & 7)) << 4), inside ? origin[i] + (i32)far : (const u8 *)g->x,
                               inside ? 16 : 0);
#endif
        }
      }
      hn_cp_async_commit();
      advance(&in);
      if (pending == LAG) {
        HN_CP_ASYNC_WAIT(LAG);
        hn_async_fence();
        hn_barrier_arrive(s->full + 8 * done.stage);
        advance(&done);
      } else {
        pending++;
      }
    }
  }
  HN_CP_ASYNC_WAIT(0);
  hn_async_fence();
  for (; pending; pending--) {
    hn_barrier_arrive(s->full + 8 * done.stage);
    advance(&done);
  }
}
#else
/* A and B by one thread through the copy engine. */
HN_FN void produce(const hn_conv_wgmma_args *g, const shared_map *s) {
  if (threadIdx.x != 0) return;
  hn_map_prefetch(&g->a);
  ring in = {0, 0};
  work mine = work_of(g);
  i32 early = load_b_early(g, s, &mine, A_BYTES), loaded = 0;
  /* All tiles have the same columns, and a place in the ring the same block of K: weights come once. */
  const u32 kept = !HN_SPLIT && mine.step % g->n_tiles == 0 && HN_STAGES % g->k_blocks == 0;
  HN_GRID_WAIT();
  for (i32 tile = mine.first; tile < g->tiles; tile += mine.step) {
    i32 row0 = tile / g->n_tiles * TILE_ROWS, n8 = tile % g->n_tiles * (HN_BN / 8);
#if HN_A == HN_A_IM2COL
    i32 image_pixels = g->oh * g->ow;
    i32 n = row0 / image_pixels, r = row0 - n * image_pixels, y = r / g->ow, x = r - y * g->ow;
    i32 h0 = y * g->stride_h - g->pad_h, w0 = x * g->stride_w - g->pad_w;
    place at = place_of(g, mine.k);
#endif
    for (i32 block = mine.k; block < mine.k_end; block++, loaded++) {
      if (early) {
        early--;
      } else {
        hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
        if (kept && loaded >= HN_STAGES)
          hn_barrier_expect(s->full + 8 * in.stage, A_BYTES);
        else
          load_b(g, s, in.stage, block, n8, A_BYTES);
      }
      u32 a = s->a + in.stage * A_BYTES, full = s->full + 8 * in.stage;
      HN_UNROLL for (i32 u = 0; u < UNITS; u++) {
#if HN_A == HN_A_IM2COL
        /* Beyond the last tap: channels that do not exist are zeros. */
        u32 there = at.tap < g->taps;
        hn_tma_load_im2col(a + u * TILE_ROWS * A_ROW, &g->a, full, there ? at.c : g->cin, w0, h0, n, there ? at.dx : 0,
                           there ? at.dy : 0);
        next_place(g, &at);
#else
        hn_tma_load_2d(a + u * TILE_ROWS * A_ROW, &g->a, full, block * K_BLOCK + u * HN_UNIT, row0);
#endif
      }
      advance(&in);
    }
  }
}
#endif

#if HN_BYTES == 4
/* One block of K of f32: d += A B. A goes through registers, where numbers become tf32, or two of them: what rounding
 * leaves is rounded in its turn, and the three products that count are added, the smallest first. row: the thread's of
 * those that it reads. */
HN_FN void multiply(float d[HN_WM][HN_BN / 2], u32 a, u32 b, u32 row, u32 lane) {
  u32 high[HN_WM][4][4], low[HN_WM][4][4];
  HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
    HN_UNROLL for (u32 k = 0; k < 4; k++) {
      const u32 unit = k * 32 / A_ROW, chunk = k * 32 % A_ROW / 16 + lane / 16, r = row + m * 64;
      const u32 swizzle = A_ROW == 128 ? r & 7 : A_ROW == 64 ? r >> 1 & 3 : r >> 2 & 1;
      const hn_u4 v = hn_matrix_load(a + unit * TILE_ROWS * A_ROW + r * A_ROW + ((chunk ^ swizzle) << 4));
      HN_UNROLL for (u32 i = 0; i < 4; i++) {
        const float whole = hn_from_bits(v.v[i]);
        high[m][k][i] = hn_to_tf32(whole);
        if (HN_TF32_PARTS == 2) low[m][k][i] = hn_to_tf32(whole - hn_from_bits(high[m][k][i]));
      }
    }
  }
  hn_wgmma_fence();
  HN_UNROLL for (u32 k = 0; k < 4; k++) {
    const u64 first = hn_wgmma_operand(b + k * 32, 128), second = hn_wgmma_operand(b + HN_BN * 128 + k * 32, 128);
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      if (HN_TF32_PARTS == 2) hn_wgmma_add(d[m], low[m][k], first), hn_wgmma_add(d[m], high[m][k], second);
      hn_wgmma_add(d[m], high[m][k], first);
    }
  }
  hn_wgmma_commit();
}
#else
/* One block of K: d += A B. */
HN_FN void multiply(hn_sum d[HN_WM][HN_BN / 2], u32 a, u32 b, u32 accumulate) {
  hn_wgmma_fence();
  HN_UNROLL for (u32 k = 0; k < 4; k++) {
    u32 unit = k * 32 / A_ROW, within = k * 32 % A_ROW;
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++)
      wgmma(d[m], hn_wgmma_operand(a + unit * TILE_ROWS * A_ROW + m * 64 * A_ROW + within, A_ROW),
            hn_wgmma_operand(b + k * 32, 128), k > 0 ? 1 : accumulate);
  }
  hn_wgmma_commit();
}
#endif

#endif
