/* What product kernels share: which tile a block has, and the way from its sums in shared memory to the output.
 *
 * Prefix: BM, BN, THREADS of a block; HN_OUT: type of the output; HN_STORE: columns that lie at a multiple of
 * their number (8, 4, 1); HN_C: type of an addend of any form; HN_CLUSTER: splits are a cluster; HN_SPLIT: splits
 * meet through memory. HN_CODE in place of HN_OUT and an epilogue: sums are i32 and become codes (codes.cuh). */
#ifndef HN_PRODUCT_CUH
#define HN_PRODUCT_CUH

#include "product_args.h"

#include "sums.cuh"

#ifdef HN_CODE
#include "codes.cuh"
#else
#include "epilogue.cuh"
#endif

#define hn_out_store HN_JOIN(hn_store_, HN_OUT)
#define hn_out_store8 HN_JOIN(hn_store8_, HN_OUT)

/* Offsets of product `batch` in A and B. */
HN_FN void hn_product_at(const hn_product_args *p, u32 batch, i64 *a, i64 *b) {
  *a = *b = 0;
  for (u32 d = p->n_batch, left = batch; d-- > 0; left /= p->batch[d]) {
    u32 i = left % p->batch[d];
    *a += i * p->a_batch[d];
    *b += i * p->b_batch[d];
  }
}

#ifdef HN_CODE
/* The same of codes. Vectors have room for whole eights. */
HN_FN void hn_product_store8(const hn_product_args *p, u32 batch, u32 m, u32 n, hn_sum x[8]) {
  u32 column = batch * p->column_batch + n, whole = p->n - n < 8 ? p->n - n : 8;
  i64 at = ((i64)batch * p->row_batch + m) * p->out_pitch + column;
  const hn_codes_args *c = &p->codes;
  u8 *to = (u8 *)p->out + at;
  const hn_codes_short way = hn_codes_short_of(c);
  u32 w[2];
#ifdef HN_ADDED
  const u8 *from = (const u8 *)c->added + at;
#endif
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    float scale[4];
    i32 zeros[4] = {0, 0, 0, 0};
    u32 added = 0;
    HN_UNROLL for (u32 k = 0; k < 4; k++) {
      x[4 * h + k] = (i32)((u32)x[4 * h + k] + (u32)((const i32 *)c->bias)[column + 4 * h + k]);
      scale[k] = ((const float *)c->scale)[column + 4 * h + k];
#ifdef HN_ZEROS
      zeros[k] = ((const i32 *)c->zeros)[column + 4 * h + k];
#endif
    }
#ifdef HN_ADDED
#if HN_STORE == 8
    added = *(const u32 *)(const void *)(from + 4 * h);
#else
    HN_UNROLL for (u32 k = 0; k < 4; k++)
      if (4 * h + k < whole) added |= (u32)from[4 * h + k] << (8 * k);
#endif
#endif
    w[h] = hn_requantise4(x + 4 * h, scale, zeros, added, way.way, &way, c);
  }
#if HN_STORE == 8
  u64 v = ((u64)w[1] << 32 | w[0]) & ~(u64)0 >> (64 - 8 * whole);
  *(u64 *)(void *)to = v;
  if (column + 8 >= (u32)p->epilogue.channels && column + 8 < p->stored) *(u64 *)(void *)(to + 8) = 0; /* the rest of a pixel's last chunk */
#else
  HN_UNROLL for (u32 k = 0; k < 8; k++)
    if (k < whole) to[k] = (u8)(w[k / 4] >> (8 * (k % 4)));
  if (n + 8 >= p->n)
    for (u32 k = whole; column + k >= (u32)p->epilogue.channels && column + k < p->stored; k++) to[k] = 0;
#endif
}
#else
/* x: sums of columns n to n + 7 of row m < p->m of product `batch`; n < p->n, a multiple of 8. The elements that
 * fill the last chunk of a pixel are zeros: the epilogue makes them so. */
HN_FN void hn_product_store8(const hn_product_args *p, u32 batch, u32 m, u32 n, float x[8]) {
  i64 at = ((i64)batch * p->row_batch + m) * p->out_pitch + (i64)batch * p->column_batch + n;
  i32 column = (i32)(batch * p->column_batch + n);
  HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] *= p->alpha;
#ifdef HN_C
  HN_UNROLL for (u32 k = 0; k < 8; k++)
    if (n + k < p->n) x[k] += p->beta * HN_JOIN(hn_load_, HN_C)(p->c, m * p->c_row + (n + k) * p->c_col);
#endif
#if HN_STORE == 8
  hn_epilogue8(x, column, at, &p->epilogue);
  hn_out_store8(p->out, at, x);
#elif HN_STORE == 4
  HN_UNROLL for (u32 h = 0; h < 8; h += 4) {
    if (n + h >= p->n) break;
    hn_u4 v;
    hn_epilogue4(x + h, column + (i32)h, at + h, &p->epilogue);
    HN_UNROLL for (u32 k = 0; k < 4; k++) v.v[k] = hn_bits(x[h + k]);
    hn_st16((float *)p->out + at + h, v);
  }
#else
  HN_UNROLL for (u32 k = 0; k < 8; k++)
    if (n + k < p->n) hn_out_store(p->out, at + k, hn_epilogue1(x[k], column + (i32)k, at + k, &p->epilogue));
  if (n + 8 >= p->n) /* what fills the last chunk of a pixel */
    for (u32 k = p->n - n; column + k >= (u32)p->epilogue.channels && column + k < p->stored; k++)
      hn_out_store(p->out, at + k, 0);
#endif
}
#endif

#define HN_MOST_CLUSTER 8 /* HN_PRODUCT_SPLITS */

/* Floats of a row of sums: eight more spread rows over the banks. */
#define HN_SUMS_PITCH (BN + 8)

/* Splits of a tile are neighbours (a cluster), then come the tiles of a row of tiles. */
HN_FN void hn_product_tile(const hn_product_args *p, u32 *tile, u32 *split, u32 *batch, u32 *m0, u32 *n0) {
  *split = blockIdx.x % p->splits;
  *tile = blockIdx.x / p->splits;
  u32 rest = *tile / p->tiles_n;
  *n0 = (*tile - rest * p->tiles_n) * BN;
  *batch = rest / p->tiles_m;
  *m0 = (rest - *batch * p->tiles_m) * BM;
}

HN_FN void hn_add8(hn_sum x[8], const hn_sum y[8]) {
  HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] += y[k];
}
/* Eight sums in memory, where splits meet. */
HN_FN void hn_put_sums(void *p, i64 i, const hn_sum x[8]) {
  hn_u4 a, b;
  HN_UNROLL for (int k = 0; k < 4; k++) a.v[k] = hn_sum_bits(x[k]), b.v[k] = hn_sum_bits(x[k + 4]);
  hn_st16((hn_sum *)p + i, a);
  hn_st16((hn_sum *)p + i + 4, b);
}
HN_FN void hn_get_sums(const void *p, i64 i, hn_sum x[8]) {
  hn_u4 a = hn_ld16((const hn_sum *)p + i), b = hn_ld16((const hn_sum *)p + i + 4);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_sum_of(a.v[k]), x[k + 4] = hn_sum_of(b.v[k]);
}

/* Eight sums of a row in shared memory, 16 bytes at a time: one by one, rows of few columns would meet in its banks. */
HN_FN void hn_shared_sums(const hn_sum *from, hn_sum x[8]) {
  const hn_u4 a = *(const hn_u4 *)(const void *)from, b = *(const hn_u4 *)(const void *)(from + 4);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_sum_of(a.v[k]), x[k + 4] = hn_sum_of(b.v[k]);
}

#ifdef HN_CLUSTER
/* Sum over the blocks of a cluster, in their order; all of it is on its way together. */
HN_FN void hn_cluster_sum(const hn_sum *sums, u32 splits, hn_sum x[8]) {
  float y[HN_MOST_CLUSTER][8];
  HN_UNROLL for (u32 s = 0; s < HN_MOST_CLUSTER; s++) {
    if (s < splits) hn_cluster_load8((const float *)(const void *)sums, s, y[s]);
  }
  HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = 0;
  HN_UNROLL for (u32 s = 0; s < HN_MOST_CLUSTER; s++) {
    if (s >= splits) break;
    HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] += hn_sum_of(hn_bits(y[s][k]));
  }
}
#endif

/* Sum of a block's copies, one behind the other. */
HN_FN void hn_block_sum(const hn_sum *sums, u32 copies, u32 r, u32 c, hn_sum x[8]) {
  hn_shared_sums(sums + r * HN_SUMS_PITCH + c, x);
  HN_UNROLL for (u32 w = 1; w < copies; w++) {
    hn_sum y[8];
    hn_shared_sums(sums + (w * BM + r) * HN_SUMS_PITCH + c, y);
    hn_add8(x, y);
  }
}

/* All threads, behind a barrier: adds up copies and splits in their order, applies the epilogue, stores. */
HN_FN void hn_product_finish(const hn_product_args *p, hn_sum *sums, u32 copies, u32 tile, u32 split, u32 batch, u32 m0,
                             u32 n0) {
  u32 first = 0, items = BM * (BN / 8);
#ifdef HN_CLUSTER
  if (copies > 1) { /* each thread adds up what nobody else reads or writes */
    for (u32 i = threadIdx.x; i < items; i += THREADS) {
      hn_sum x[8];
      hn_block_sum(sums, copies, i / (BN / 8), i % (BN / 8) * 8, x);
      HN_UNROLL for (u32 k = 0; k < 8; k++) sums[i / (BN / 8) * HN_SUMS_PITCH + i % (BN / 8) * 8 + k] = x[k];
    }
  }
  hn_cluster_sync();
  first = split * items / p->splits, items = (split + 1) * items / p->splits;
#endif
#ifdef HN_SPLIT
  HN_SHARED u32 last;
  u32 *counter = (u32 *)p->work + tile;
  hn_sum *work = (hn_sum *)(void *)((u8 *)p->work + ((i64)p->tiles * 4 + 255) / 256 * 256) + (i64)tile * p->splits * BM * BN;
  for (u32 i = threadIdx.x; i < items; i += THREADS) {
    hn_sum x[8];
    hn_block_sum(sums, copies, i / (BN / 8), i % (BN / 8) * 8, x);
    hn_put_sums(work + (i64)split * BM * BN, (i64)i * 8, x);
  }
  hn_fence();
  HN_SYNC();
  if (threadIdx.x == 0) last = hn_atomic_add_u32(counter, 1) == p->splits - 1;
  HN_SYNC();
  if (!last) return;
  hn_fence();
#endif
  (void)tile, (void)split;
  for (u32 i = first + threadIdx.x; i < items; i += THREADS) {
    u32 r = i / (BN / 8), c = i % (BN / 8) * 8;
    if (m0 + r >= p->m || n0 + c >= p->n) continue;
    hn_sum x[8];
#ifdef HN_CLUSTER
    hn_cluster_sum(sums + r * HN_SUMS_PITCH + c, p->splits, x);
#elif defined(HN_SPLIT)
    HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = 0;
    for (u32 s = 0; s < p->splits; s++) {
      hn_sum y[8];
      hn_get_sums(work + (i64)s * BM * BN, (i64)i * 8, y);
      hn_add8(x, y);
    }
#else
    hn_block_sum(sums, copies, r, c, x);
#endif
    hn_product_store8(p, batch, m0 + r, n0 + c, x);
  }
#ifdef HN_CLUSTER
  hn_cluster_sync(); /* nobody leaves while its sums are being read */
#endif
}

#endif
