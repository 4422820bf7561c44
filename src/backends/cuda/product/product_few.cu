/* Products of few rows on tensor cores by mma.sync: implicit-GEMM convolution and matrices (product_args.h) whose
 * operands go from memory to registers, as fragments. There is no ring of tiles to fill and no barrier until the sums
 * meet: a block waits for memory once for as much of K as its warps have on their way, and of the weights, which do not
 * hang on the kernel before, not even that.
 *
 * A block computes BM x BN of the output over its share of K, cut in chunks of 32 channels of a tap, which its WARPS_K
 * groups of warps take in turn. Within a chunk a thread of a quad has eight channels that lie together, so that it reads
 * them as 16 bytes, and within 16 columns four; B is packed in that order: [product][16 columns][chunk][2 halves of the
 * chunk][32 threads][4 words]. Sums meet as product.cuh says.
 *
 * Prefix: HN_T f16 | bf16, BM, BN, WARPS_M, WARPS_K, HN_TAP32 (chunks of a tap), HN_KX, HN_KY (taps of the kernel),
 * HN_CHUNKS (of all taps), HN_TOGETHER (chunks that a warp has on their way), BLOCKS (a multiprocessor shall hold);
 * HN_ONE_TAP, HN_CLUSTER, HN_SPLIT and those of product.cuh. */
#include "prelude.cuh"

#define THREADS (32 * WARPS_M * WARPS_K)
#include "product.cuh"

#define hn_mma HN_JOIN(hn_mma_, HN_T)

enum { TM = BM / WARPS_M / 16, TN = BN / 16 };

/* Two rows of A that a thread has in sixteen. */
typedef struct rows {
  const u16 *at[TM][2]; /* the row's first tap, at the thread's channels; may lie before the image */
  i32 z[TM][2], y[TM][2], x[TM][2];
} rows;

HN_FN void begin_rows(const hn_product_args *p, rows *r, const u16 *a, u32 m0) {
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const u32 m = m0 + i * 16 + h * 8;
    const u32 x = m % p->grid_x, rest = m / p->grid_x, y = rest % p->grid_y, z = rest / p->grid_y, image = z / p->grid_z;
    r->z[i][h] = (i32)(z - image * p->grid_z) * p->stride_z - p->pad_z;
    r->y[i][h] = m < p->m ? (i32)y * p->stride_y - p->pad_y : -0x40000000;
    r->x[i][h] = (i32)x * p->stride_x - p->pad_x;
    r->at[i][h] = a + (i64)image * p->image + (((i64)r->z[i][h] * p->in_y + r->y[i][h]) * p->in_x + r->x[i][h]) * p->pixel;
    if (m >= p->m) r->at[i][h] = a;
  }
}

/* Chunk i of the rows; zeros for what does not exist. */
HN_FN void load_a(const hn_product_args *p, const rows *r, i32 chunk, i32 last, hn_u4 v[TM][2]) {
  const i32 tap = chunk / HN_TAP32, c = (chunk - tap * HN_TAP32) * 32;
  const bool there = chunk < last && (u32)c + threadIdx.x % 4 * 8 < p->tap;
#ifndef HN_ONE_TAP
  const i32 dx = tap % HN_KX * p->dilation_x, dy = tap / HN_KX % HN_KY * p->dilation_y,
            dz = tap / (HN_KX * HN_KY) * p->dilation_z;
  const i64 by = (((i64)dz * p->in_y + dy) * p->in_x + dx) * p->pixel + c;
#else
  const i64 by = c;
#endif
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
#ifdef HN_ONE_TAP
    const bool in = there && r->y[i][h] >= 0;
#else
    const bool in = there && (u32)(r->z[i][h] + dz) < (u32)p->in_z && (u32)(r->y[i][h] + dy) < (u32)p->in_y &&
                    (u32)(r->x[i][h] + dx) < (u32)p->in_x;
#endif
    HN_UNROLL for (u32 e = 0; e < 4; e++) v[i][h].v[e] = 0;
    if (in) v[i][h] = hn_ld16(r->at[i][h] + by);
  }
}

/* b: where the block's columns, and the thread's words, begin. */
HN_FN void load_b(const u8 *b, i32 chunk, i32 last, i32 groups, hn_u4 v[TN][2]) {
  HN_UNROLL for (i32 n = 0; n < TN; n++) HN_UNROLL for (i32 s = 0; s < 2; s++) {
    HN_UNROLL for (u32 e = 0; e < 4; e++) v[n][s].v[e] = 0;
    if (chunk < last && n < groups) v[n][s] = hn_ld16(b + ((i64)n * HN_CHUNKS + chunk) * 1024 + s * 512);
  }
}

HN_KERNEL_BOUNDS(product_few, hn_product_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(u8, shared);
  const hn_product_args *p = &args;
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp % WARPS_M, wk = warp / WARPS_M;
  u32 split, tile, batch, m0, n0;
  hn_product_tile(p, &tile, &split, &batch, &m0, &n0);
  i64 a_at, b_at;
  hn_product_at(p, batch, &a_at, &b_at);
  rows r;
  begin_rows(p, &r, (const u16 *)p->a + a_at + lane % 4 * 8, m0 + wm * (TM * 16) + lane / 4);
  const u8 *b = (const u8 *)p->b + b_at * 2 + (i64)(n0 / 16) * HN_CHUNKS * 1024 + lane * 16;
  const i32 groups = (i32)((p->n - n0 + 15) / 16);
  const i32 first = (i32)(split * p->split_tiles), end = first + (i32)p->split_tiles, last = end < HN_CHUNKS ? end : HN_CHUNKS;
  float d[TM][TN][2][4];
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 j = 0; j < 2; j++)
    HN_UNROLL for (u32 e = 0; e < 4; e++) d[i][n][j][e] = 0;
  HN_GRID_GO();
  hn_u4 w[HN_TOGETHER][TN][2];
  HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) load_b(b, first + (i32)wk + k * WARPS_K, last, groups, w[k]);
  HN_GRID_WAIT();
  for (i32 chunk = first + (i32)wk; chunk < last; chunk += HN_TOGETHER * WARPS_K) {
    hn_u4 v[HN_TOGETHER][TM][2];
    HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) load_a(p, &r, chunk + k * WARPS_K, last, v[k]);
    HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) {
      HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 s = 0; s < 2; s++) HN_UNROLL for (u32 i = 0; i < TM; i++) {
        const u32 a[4] = {v[k][i][0].v[s * 2], v[k][i][1].v[s * 2], v[k][i][0].v[s * 2 + 1], v[k][i][1].v[s * 2 + 1]};
        hn_mma(d[i][n][0], a, w[k][n][s].v);
        hn_mma(d[i][n][1], a, w[k][n][s].v + 2);
      }
      load_b(b, chunk + (k + HN_TOGETHER) * WARPS_K, last, groups, w[k]);
    }
  }
  float *sums = (float *)(void *)shared + (wk * BM + wm * (TM * 16) + lane / 4) * HN_SUMS_PITCH + lane % 4 * 4;
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const hn_u4 s = {{hn_bits(d[i][n][0][h * 2]), hn_bits(d[i][n][0][h * 2 + 1]), hn_bits(d[i][n][1][h * 2]),
                      hn_bits(d[i][n][1][h * 2 + 1])}};
    *(hn_u4 *)(void *)(sums + (i * 16 + h * 8) * HN_SUMS_PITCH + n * 16) = s;
  }
  HN_SYNC();
  hn_product_finish(p, (hn_sum *)(void *)shared, WARPS_K, tile, split, batch, m0, n0);
}
