/* Convolution (and matrix product) as an implicit GEMM on Hopper's tensor cores.
 *
 * Rows are output pixels, columns output channels, K runs over (tap, channel) in blocks of 64. One warpgroup
 * copies blocks of A and B into a ring in shared memory, two warpgroups multiply. Blocks of threads are
 * persistent: tile after tile. Compiled with
 *   HN_HALF_MMA  "f16.f16" or "bf16.bf16"; HN_LOW(x), HN_HIGH(x), HN_PACK(low, high): the type's conversions
 *   HN_WM        tiles of 64 rows that a warpgroup multiplies with each block of B: 1 or 2
 *   HN_BN        columns of a tile: 32, 64, 128, 256
 *   HN_ALTERNATE 1: the two warpgroups take turns in tiles, so that one stores while the other multiplies;
 *                0: they share a tile's rows
 *   HN_STAGES    blocks in the ring
 *   HN_A         how A comes: HN_A_MATRIX, HN_A_IM2COL, HN_A_GATHER
 *   HN_UNIT      channels that one copy of A takes: 64, 32 or 16 (HN_A_GATHER: 8)
 *   HN_RESIDUAL  1: the epilogue adds a tensor of the output's shape */
#include "conv_wgmma_args.h"
#include "hopper.cuh"

#define HN_A_MATRIX 0
#define HN_A_IM2COL 1
#define HN_A_GATHER 2

enum {
  GROUP_ROWS = 64 * HN_WM,
  TILE_ROWS = HN_ALTERNATE ? GROUP_ROWS : 2 * GROUP_ROWS,
  A_BYTES = TILE_ROWS * 128,
  B_BYTES = HN_BN * 128,
  A_ROW = HN_A == HN_A_GATHER ? 128 : HN_UNIT * 2, /* bytes of a row of a copy */
  UNITS = 128 / A_ROW,
  STAGING = GROUP_ROWS * HN_BN * 2 /* of a warpgroup: panels of 64 columns */
};
/* Gathered blocks under way. The multiplying side lets go of a block when it has got the next one, so at most
 * HN_STAGES - 2. */
#define LAG (HN_STAGES > 4 ? 3 : HN_STAGES - 2)

#define HN_PASTE_(a, b) a##b
#define HN_PASTE(a, b) HN_PASTE_(a, b)
HN_PASTE(HN_DEFINE_WGMMA_, HN_BN)(wgmma, HN_HALF_MMA)

typedef struct ring {
  u32 stage, phase;
} ring;
HN_FN void advance(ring *r) {
  if (++r->stage == HN_STAGES) r->stage = 0, r->phase ^= 1;
}

typedef struct shared_map {
  u32 a, b, staging, full, empty, arrived; /* addresses */
} shared_map;

HN_FN void load_b(const hn_conv_wgmma_args *g, const shared_map *s, u32 stage, i32 block, i32 n8, u32 a_bytes) {
  i32 here = g->n8 - n8 < HN_BN / 8 ? g->n8 - n8 : HN_BN / 8;
  u32 full = s->full + 8 * stage;
  hn_barrier_expect(full, a_bytes + (u32)here * 1024);
  hn_bulk_load(s->b + stage * B_BYTES, (const u8 *)g->weights + ((i64)block * g->n8 + n8) * 1024, (u32)here * 1024, full);
}

#if HN_A == HN_A_GATHER
/* A by the threads of the warpgroup: 16 bytes of a tap's channels at a time. */
HN_FN void produce(const hn_conv_wgmma_args *g, const shared_map *s) {
  u32 t = threadIdx.x;
  ring in = {0, 0}, done = {0, 0};
  u32 pending = 0;
  i32 chunks = g->pitch / 8;
  for (i32 tile = blockIdx.x; tile < g->tiles; tile += gridDim.x) {
    i32 row0 = tile / g->n_tiles * TILE_ROWS, n8 = tile % g->n_tiles * (HN_BN / 8);
    enum { MINE = TILE_ROWS > 128 ? TILE_ROWS / 128 : 1 };
    i32 h0[MINE], w0[MINE];
    const u8 *image[MINE];
    HN_UNROLL for (i32 i = 0; i < MINE; i++) {
      i32 p = row0 + (i32)t + 128 * i, image_pixels = g->oh * g->ow;
      i32 n = p / image_pixels, r = p - n * image_pixels, y = r / g->ow, x = r - y * g->ow;
      h0[i] = p < g->pixels ? y * g->stride_h - g->pad_h : -(1 << 20); /* beyond the last: zeros */
      w0[i] = x * g->stride_w - g->pad_w;
      image[i] = (const u8 *)g->x + (i64)n * g->h * g->w * g->pitch * 2;
    }
    i32 c = 0, tap = 0, dy = 0, dx = 0, column = 0;
    for (i32 block = 0; block < g->k_blocks; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      if (t == 0) load_b(g, s, in.stage, block, n8, 0);
      for (u32 k = 0; k < 8; k++) {
        HN_UNROLL for (i32 i = 0; i < MINE; i++) {
          u32 row = t + 128 * i;
          i32 y = h0[i] + dy, x = w0[i] + dx;
          u32 inside = (u32)y < (u32)g->h && (u32)x < (u32)g->w && tap < g->taps;
          const u8 *from = image[i] + (((i64)(inside ? y : 0) * g->w + (inside ? x : 0)) * g->pitch + c * 8) * 2;
          if (TILE_ROWS >= 128 || row < TILE_ROWS)
            hn_cp_async16_to(s->a + in.stage * A_BYTES + row * 128 + ((k ^ (row & 7)) << 4), inside ? from : (const u8 *)g->x,
                             inside ? 16 : 0);
        }
        if (++c == chunks) {
          c = 0, tap++, dx += g->dilation_w;
          if (++column == g->kw) column = 0, dx = 0, dy += g->dilation_h;
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
  for (i32 tile = blockIdx.x; tile < g->tiles; tile += gridDim.x) {
    i32 row0 = tile / g->n_tiles * TILE_ROWS, n8 = tile % g->n_tiles * (HN_BN / 8);
#if HN_A == HN_A_IM2COL
    i32 image_pixels = g->oh * g->ow;
    i32 n = row0 / image_pixels, r = row0 - n * image_pixels, y = r / g->ow, x = r - y * g->ow;
    i32 h0 = y * g->stride_h - g->pad_h, w0 = x * g->stride_w - g->pad_w;
    i32 c = 0, tap = 0, dy = 0, dx = 0, column = 0;
#endif
    for (i32 block = 0; block < g->k_blocks; block++) {
      hn_barrier_wait(s->empty + 8 * in.stage, in.phase ^ 1);
      load_b(g, s, in.stage, block, n8, A_BYTES);
      u32 a = s->a + in.stage * A_BYTES, full = s->full + 8 * in.stage;
#if HN_A == HN_A_IM2COL
      HN_UNROLL for (i32 u = 0; u < UNITS; u++) {
        /* Beyond the last tap: channels that do not exist are zeros. */
        hn_tma_load_im2col(a + u * TILE_ROWS * A_ROW, &g->a, full, tap < g->taps ? c : g->pitch, w0, h0, n, dx, dy);
        c += HN_UNIT;
        if (c >= g->pitch) {
          c = 0, tap++, dx += g->dilation_w;
          if (++column == g->kw) column = 0, dx = 0, dy += g->dilation_h;
          if (tap >= g->taps) dx = dy = 0;
        }
      }
#else
      HN_UNROLL for (i32 u = 0; u < UNITS; u++)
        hn_tma_load_2d(a + u * TILE_ROWS * A_ROW, &g->a, full, block * 64 + u * HN_UNIT, row0);
#endif
      advance(&in);
    }
  }
}
#endif

/* Thread q of four holds columns 2q and 2q + 1 of 8 in each of four 8s; afterwards all of the q-th 8. */
HN_FN void transpose(float x[8], u32 q) {
  u32 odd = q & 1, high = q & 2;
  HN_UNROLL for (i32 h = 0; h < 2; h++) {
    HN_UNROLL for (i32 e = 0; e < 2; e++) {
      float got = hn_shfl_xor(odd ? x[4 * h + e] : x[4 * h + 2 + e], 1);
      if (odd) x[4 * h + e] = got;
      else x[4 * h + 2 + e] = got;
    }
  }
  HN_UNROLL for (i32 i = 0; i < 4; i++) {
    float got = hn_shfl_xor(high ? x[i] : x[4 + i], 2);
    if (high) x[i] = got;
    else x[4 + i] = got;
  }
}

HN_FN void epilogue(const hn_conv_wgmma_args *g, float x[8], const float bias[8], const u32 residual[4], i32 channel) {
  HN_UNROLL for (i32 k = 0; k < 8; k++) x[k] += bias[k];
#if HN_RESIDUAL
  HN_UNROLL for (i32 k = 0; k < 4; k++) x[2 * k] += HN_LOW(residual[k]), x[2 * k + 1] += HN_HIGH(residual[k]);
#endif
#ifdef HN_RELU
  HN_UNROLL for (i32 k = 0; k < 8; k++) x[k] = fmaxf(x[k], 0.f);
#endif
  if (channel + 8 > g->channels) {
    HN_UNROLL for (i32 k = 0; k < 8; k++) x[k] = channel + k < g->channels ? x[k] : 0.f;
  }
}

HN_FN void consume(const hn_conv_wgmma_args *g, const shared_map *s, u32 group) {
  u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31, q = lane & 3;
  u32 staging = s->staging + group * STAGING, arrived = s->arrived + 8 * group, round = 0;
  u32 turn = 0;
  ring in = {0, 0};
  for (i32 tile = blockIdx.x; tile < g->tiles; tile += gridDim.x, turn ^= 1) {
    if (HN_ALTERNATE && turn != group) { /* the other's */
      u32 skipped = in.stage + (u32)g->k_blocks;
      in.phase ^= skipped / HN_STAGES & 1, in.stage = skipped % HN_STAGES;
      continue;
    }
    i32 row0 = tile / g->n_tiles * TILE_ROWS + (HN_ALTERNATE ? 0 : (i32)group * GROUP_ROWS);
    i32 column0 = tile % g->n_tiles * HN_BN;
#if HN_RESIDUAL
    if (t == 0) {
      hn_bulk_wait_read();
      hn_barrier_expect(arrived, STAGING);
      HN_UNROLL for (i32 p = 0; p < HN_BN; p += 64)
        hn_tma_load_2d(staging + p * GROUP_ROWS * 2, &g->residual, arrived, column0 + p, row0);
    }
#endif
    float d[HN_WM][HN_BN / 2];
    u32 before = 0;
    for (i32 block = 0; block < g->k_blocks; block++) {
      hn_barrier_wait(s->full + 8 * in.stage, in.phase);
      u32 a = s->a + in.stage * A_BYTES + (HN_ALTERNATE ? 0 : group * GROUP_ROWS * A_ROW), b = s->b + in.stage * B_BYTES;
      hn_wgmma_fence();
      HN_UNROLL for (u32 k = 0; k < 4; k++) {
        u32 unit = k * 32 / A_ROW, within = k * 32 % A_ROW;
        HN_UNROLL for (u32 m = 0; m < HN_WM; m++)
          wgmma(d[m], hn_wgmma_operand(a + unit * TILE_ROWS * A_ROW + m * 64 * A_ROW + within, A_ROW), hn_wgmma_operand(b + k * 32, 128),
                block > 0 || k > 0);
      }
      hn_wgmma_commit();
      if (block > 0) {
        HN_WGMMA_WAIT(1);
        if (t == 0) hn_barrier_arrive(s->empty + 8 * before);
      }
      before = in.stage;
      advance(&in);
    }
    HN_WGMMA_WAIT(0);
    if (t == 0) hn_barrier_arrive(s->empty + 8 * before);

#if HN_RESIDUAL
    hn_barrier_wait(arrived, round);
    round ^= 1;
#else
    if (t == 0) hn_bulk_wait_read();
    hn_sync_some(1 + group, 128);
#endif
    HN_UNROLL for (u32 c = 0; c < HN_BN; c += 32) {
      i32 channel = column0 + (i32)(c + 8 * q);
      float bias[8];
      hn_u4 low = hn_ld16((const float *)g->bias + channel), high = hn_ld16((const float *)g->bias + channel + 4);
      HN_UNROLL for (i32 k = 0; k < 4; k++) bias[k] = hn_from_bits(low.v[k]), bias[4 + k] = hn_from_bits(high.v[k]);
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
        HN_UNROLL for (u32 half = 0; half < 2; half++) {
          float x[8];
          HN_UNROLL for (u32 j = 0; j < 4; j++) {
            x[2 * j] = d[m][(c / 8 + j) * 4 + half * 2];
            x[2 * j + 1] = d[m][(c / 8 + j) * 4 + half * 2 + 1];
          }
          transpose(x, q);
          u32 row = m * 64 + warp * 16 + half * 8 + lane / 4, chunk = (c / 8 & 7) + q;
          u32 at = staging + c / 64 * (GROUP_ROWS * 128) + row * 128 + ((chunk ^ (row & 7)) << 4);
          hn_u4 v = {{0, 0, 0, 0}};
#if HN_RESIDUAL
          v = hn_shared_ld16(at);
#endif
          epilogue(g, x, bias, v.v, channel);
          HN_UNROLL for (i32 k = 0; k < 4; k++) v.v[k] = HN_PACK(x[2 * k], x[2 * k + 1]);
          hn_shared_st16(at, v);
        }
      }
    }
    hn_async_fence();
    hn_sync_some(1 + group, 128);
    if (t == 0) {
      HN_UNROLL for (i32 p = 0; p < HN_BN; p += 64) hn_tma_store_2d(&g->out, staging + p * GROUP_ROWS * 2, column0 + p, row0);
      hn_bulk_commit();
    }
  }
  if (t == 0) hn_bulk_wait();
}

HN_KERNEL_BOUNDS(conv_wgmma, hn_conv_wgmma_args, g, 384, 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  u32 base = hn_shared_address(memory);
  shared_map s;
  s.a = base;
  s.b = s.a + HN_STAGES * A_BYTES;
  s.staging = s.b + HN_STAGES * B_BYTES;
  s.full = s.staging + 2 * STAGING;
  s.empty = s.full + 8 * HN_STAGES;
  s.arrived = s.empty + 8 * HN_STAGES;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_STAGES; i++) {
      hn_barrier_init(s.full + 8 * i, HN_A == HN_A_GATHER ? 129 : 1);
      hn_barrier_init(s.empty + 8 * i, HN_ALTERNATE ? 1 : 2);
    }
    hn_barrier_init(s.arrived, 1);
    hn_barrier_init(s.arrived + 8, 1);
    hn_barrier_init_fence();
  }
  __syncthreads();
  u32 group = threadIdx.x / 128;
  if (group == 0) {
    HN_REGISTERS_LESS(56);
    produce(&g, &s);
  } else {
    HN_REGISTERS_MORE(224);
    consume(&g, &s, group - 1);
  }
}
