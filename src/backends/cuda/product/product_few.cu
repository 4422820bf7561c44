/* Products of few rows on tensor cores by mma.sync: 1x1 convolutions and matrices (product_args.h) whose operands go from
 * memory to registers, as fragments. There is no ring of tiles to fill and no barrier until the sums meet: a block waits
 * for memory once for as much of K as its warps have on their way, and for the weights, which do not hang on the kernel
 * before, not even that.
 *
 * A block computes BM x BN of the output. Its WARPS warps take chunks of 32 elements of K in turn. Within a chunk a thread
 * of a quad has eight elements that lie together, so that it reads them as 16 bytes, and within 16 columns four; B is
 * packed in that order: [product][16 columns][chunk][2 halves of the chunk][32 threads][4 words]. Sums of the warps meet
 * as product.cuh says.
 *
 * Prefix: HN_T f16 | bf16, BM, BN, WARPS, HN_CHUNKS (of K), HN_TOGETHER (chunks that a warp has on their way), BLOCKS (a
 * multiprocessor shall hold), and those of product.cuh. */
#include "prelude.cuh"

#define THREADS (32 * WARPS)
#include "product.cuh"

#define hn_mma HN_JOIN(hn_mma_, HN_T)

enum { TM = BM / 16, TN = BN / 16 };

/* Where the two rows of A that a thread has in sixteen begin, at its channels; NULL: there is none. */
HN_FN void begin_rows(const hn_product_args *p, const u16 *rows[TM][2], const u16 *a, u32 m0) {
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const u32 m = m0 + i * 16 + h * 8;
    const u32 x = m % p->grid_x, rest = m / p->grid_x, y = rest % p->grid_y, z = rest / p->grid_y, image = z / p->grid_z;
    const i64 line = ((i64)(z - image * p->grid_z) * p->stride_z * p->in_y + (i64)y * p->stride_y) * p->in_x;
    rows[i][h] = m < p->m ? a + (i64)image * p->image + (line + (i64)x * p->stride_x) * p->pixel : (const u16 *)0;
  }
}

/* A chunk of the rows; zeros for what does not exist. */
HN_FN void load_a(const hn_product_args *p, const u16 *const rows[TM][2], i32 chunk, hn_u4 v[TM][2]) {
  const u32 k = (u32)chunk * 32;
  const bool there = k + threadIdx.x % 4 * 8 < p->k;
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
    HN_UNROLL for (u32 e = 0; e < 4; e++) v[i][h].v[e] = 0;
    if (there && rows[i][h]) v[i][h] = hn_ld16(rows[i][h] + k);
  }
}

/* b: where the block's columns, and the thread's words, begin. */
HN_FN void load_b(const u8 *b, i32 chunk, i32 groups, hn_u4 v[TN][2]) {
  HN_UNROLL for (i32 n = 0; n < TN; n++) HN_UNROLL for (i32 s = 0; s < 2; s++) {
    HN_UNROLL for (u32 e = 0; e < 4; e++) v[n][s].v[e] = 0;
    if (chunk < HN_CHUNKS && n < groups) v[n][s] = hn_ld16(b + ((i64)n * HN_CHUNKS + chunk) * 1024 + s * 512);
  }
}

HN_KERNEL_BOUNDS(product_few, hn_product_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(u8, shared);
  const hn_product_args *p = &args;
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  u32 split, tile, batch, m0, n0;
  hn_product_tile(p, &tile, &split, &batch, &m0, &n0);
  i64 a_at, b_at;
  hn_product_at(p, batch, &a_at, &b_at);
  const u16 *rows[TM][2];
  begin_rows(p, rows, (const u16 *)p->a + a_at + lane % 4 * 8, m0 + lane / 4);
  const u8 *b = (const u8 *)p->b + b_at * 2 + (i64)(n0 / 16) * HN_CHUNKS * 1024 + lane * 16;
  const i32 groups = (i32)((p->n - n0 + 15) / 16);
  float d[TM][TN][2][4];
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 j = 0; j < 2; j++)
    HN_UNROLL for (u32 e = 0; e < 4; e++) d[i][n][j][e] = 0;
  HN_GRID_GO();
  hn_u4 w[HN_TOGETHER][TN][2];
  HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) load_b(b, (i32)warp + k * WARPS, groups, w[k]);
  HN_GRID_WAIT();
  for (i32 chunk = (i32)warp; chunk < HN_CHUNKS; chunk += HN_TOGETHER * WARPS) {
    hn_u4 v[HN_TOGETHER][TM][2];
    HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) load_a(p, rows, chunk + k * WARPS, v[k]);
    HN_UNROLL for (i32 k = 0; k < HN_TOGETHER; k++) {
      HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 s = 0; s < 2; s++) HN_UNROLL for (u32 i = 0; i < TM; i++) {
        const u32 a[4] = {v[k][i][0].v[s * 2], v[k][i][1].v[s * 2], v[k][i][0].v[s * 2 + 1], v[k][i][1].v[s * 2 + 1]};
        hn_mma(d[i][n][0], a, w[k][n][s].v);
        hn_mma(d[i][n][1], a, w[k][n][s].v + 2);
      }
      load_b(b, chunk + (k + HN_TOGETHER) * WARPS, groups, w[k]);
    }
  }
  float *sums = (float *)(void *)shared + (warp * BM + lane / 4) * HN_SUMS_PITCH + lane % 4 * 4;
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 n = 0; n < TN; n++) HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const hn_u4 s = {{hn_bits(d[i][n][0][h * 2]), hn_bits(d[i][n][0][h * 2 + 1]), hn_bits(d[i][n][1][h * 2]),
                      hn_bits(d[i][n][1][h * 2 + 1])}};
    *(hn_u4 *)(void *)(sums + (i * 16 + h * 8) * HN_SUMS_PITCH + n * 16) = s;
  }
  HN_SYNC();
  hn_product_finish(p, (hn_sum *)(void *)shared, WARPS, tile, split, batch, m0, n0);
}
