/* Matrix products on tensor cores by mma.sync: implicit-GEMM convolution and matrices (product_args.h).
 *
 * A block computes BM x BN of the output over its share of K, from a ring of STAGES tiles of 128 bytes of K that
 * cp.async fills; taps outside the image, rows and columns beyond the end are filled with zeros. WARPS_K groups
 * of warps take every WARPS_K-th step of a tile. Their sums, and those of the blocks that share a tile (splits),
 * meet in shared memory in a fixed order: of one block, of a cluster (HN_CLUSTER), or, through memory, of the
 * block that finishes last. Rows of a tile are 128 bytes, their chunks of 16 bytes exchanged by the row's number,
 * so that ldmatrix and cp.async meet no bank conflicts.
 *
 * Prefix: HN_T f16 | bf16 | f32 (as tf32) | u8 | i8 (codes: sums are integers, B is packed), BM, BN, WARPS_M, WARPS_N, WARPS_K, STAGES, BLOCKS (a multiprocessor
 * shall hold); HN_ONE_TAP: no taps to walk; HN_PLANE: a depth of 1; HN_A_ELEMENTS, HN_B_ELEMENTS: that operand is a matrix with any
 * distances, loaded element by element; HN_B_LINES: rows of B are lines of memory (else its columns are);
 * HN_B_PACKED: B is constant, HN_B_ROUNDED: and tf32 already; HN_SPLIT3: f32 as three products of tf32 parts, whose error is of f32's order; HN_CLUSTER: splits are a cluster; HN_SPLIT: splits meet through memory;
 * HN_OUTSIDE: taps outside the image read p->codes.outside in place of zeros; and those of product.cuh. */
#include "prelude.cuh"

#define THREADS (32 * WARPS_M * WARPS_N * WARPS_K)
#include "product.cuh"

#define STAGE_BYTES ((BM + BN) * 128)
#define LOADERS (THREADS / 8) /* rows that the threads load at once, 8 chunks each */
#define ROWS_A ((BM + LOADERS - 1) / LOADERS)
#define ROWS_B ((BN + LOADERS - 1) / LOADERS)
#define WM (BM / WARPS_M)
#define WN (BN / WARPS_N)
#define TM (WM / 16)
#define TN (WN / 8)

#define HN_IS_f32 1
#define HN_IS_f16 0
#define HN_IS_bf16 0
#define HN_IS_u8 0
#define HN_IS_i8 0
#define HN_IS_TF32 HN_JOIN(HN_IS_, HN_T)
#if HN_IS_TF32
#define CHUNK 4
#define hn_mma hn_mma_tf32
typedef u32 element;
#elif defined(HN_CODE)
#define CHUNK 16
#define hn_mma HN_JOIN(hn_mma_, HN_T)
typedef u8 element;
#else
#define CHUNK 8
#define hn_mma HN_JOIN(hn_mma_, HN_T)
typedef u16 element;
#endif

/* Lines of B: 8 CHUNK rows of BN columns, chunks exchanged so that eight rows lie in different banks. */
#define LINE_CHUNKS (BN / CHUNK)

typedef struct hn_sum2 {
  hn_sum v[2];
} __attribute__((aligned(8))) hn_sum2;

typedef struct loader {
  const u8 *a, *b;        /* of this product */
  const u8 *at[ROWS_A];   /* the thread's chunk of each row in the tile that comes next */
  const u8 *b_at[ROWS_B]; /* the same of B */
  u32 in;                 /* bit i: row i of A is there, for the tap; bit 16 + i: row i of B */
  u32 chunk;              /* of K, the thread's own in the tile that comes next */
#ifndef HN_ONE_TAP
  i32 z[ROWS_A], y[ROWS_A], x[ROWS_A]; /* the row's first tap; outside for rows that are none */
  i32 row[ROWS_A];                     /* chunks of A up to there; may lie before the image */
  u32 c;                               /* chunk within the tap */
  i32 dz, dy, dx;                      /* the tap */
#endif
} loader;

HN_FN u32 place(u32 row, u32 chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }
HN_FN u32 place_line(u32 k, u32 chunk) {
  return k * (LINE_CHUNKS * 16) + ((chunk ^ (LINE_CHUNKS >= 8 ? k & 7 : k >> 1 & 3)) << 4);
}

#ifndef HN_ONE_TAP
/* Where the rows' chunks are for the tap. */
HN_FN void set_tap(const hn_product_args *p, loader *l) {
  i32 z = l->dz * p->dilation_z, y = l->dy * p->dilation_y, x = l->dx * p->dilation_x;
  i32 tap = ((z * p->in_y + y) * p->in_x + x) * (i32)(p->pixel / CHUNK) + (i32)l->c;
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
    bool in = (u32)(l->y[i] + y) < (u32)p->in_y && (u32)(l->x[i] + x) < (u32)p->in_x;
#ifndef HN_PLANE
    in = in && (u32)(l->z[i] + z) < (u32)p->in_z;
#endif
    l->at[i] = l->a + ((i64)(l->row[i] + tap) << 4);
    l->in = in ? l->in | 1u << i : l->in & ~(1u << i);
  }
}
#endif

HN_FN void begin_rows(const hn_product_args *p, loader *l, u32 m0, u32 first) {
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
    u32 m = m0 + first + i * LOADERS;
    bool in = m < p->m && first + i * LOADERS < BM;
    u32 x = m % p->grid_x, rest = m / p->grid_x, y = rest % p->grid_y, z = rest / p->grid_y;
    u32 image = z / p->grid_z;
    i32 iz = (i32)(z - image * p->grid_z) * p->stride_z - p->pad_z, iy = (i32)y * p->stride_y - p->pad_y;
    i32 ix = (i32)x * p->stride_x - p->pad_x;
    i64 at = (i64)image * p->image + (((i64)iz * p->in_y + iy) * p->in_x + ix) * p->pixel;
#ifdef HN_ONE_TAP
    l->at[i] = l->a + at * (i64)sizeof(element);
    l->in |= (u32)in << i;
#else
    l->row[i] = (i32)(at / CHUNK);
    l->z[i] = iz, l->x[i] = ix;
    l->y[i] = in ? iy : -0x40000000;
#endif
  }
}

HN_FN void begin_k(const hn_product_args *p, loader *l, u32 chunk) {
  l->chunk = chunk;
#ifdef HN_ONE_TAP
#ifdef HN_A_ELEMENTS
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) l->at[i] += (i64)(chunk * CHUNK) * p->a_col * (i64)sizeof(element);
#else
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) l->at[i] += (i64)chunk << 4;
#endif
#else
  u32 tap = chunk / (p->tap / CHUNK);
  l->c = chunk - tap * (p->tap / CHUNK);
  l->dx = (i32)(tap % (u32)p->kernel_x);
  tap /= (u32)p->kernel_x;
  l->dy = (i32)(tap % (u32)p->kernel_y);
  l->dz = (i32)(tap / (u32)p->kernel_y);
  set_tap(p, l);
#endif
}

HN_FN void begin_columns(const hn_product_args *p, loader *l, u32 n0, u32 first) {
#ifndef HN_B_LINES
  HN_UNROLL for (u32 i = 0; i < ROWS_B; i++) {
    u32 n = n0 + first + i * LOADERS;
    l->in |= (u32)(n < p->n) << (16 + i);
    l->b_at[i] = l->b + ((i64)n * p->b_col + (i64)(l->chunk * CHUNK) * p->b_row) * (i64)sizeof(element);
  }
#endif
}

/* To the same chunk of the next tile: p->step_* are what eight chunks are in taps. */
HN_FN void next_k(const hn_product_args *p, loader *l) {
  l->chunk += 8;
#ifndef HN_ONE_TAP
  l->c += 8;
  if (l->c < p->tap / CHUNK) {
    HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) l->at[i] += 128;
    return;
  }
  l->c += p->step_c - 8;
  l->dx += p->step_x;
  l->dy += p->step_y;
  if (l->c >= p->tap / CHUNK) l->c -= p->tap / CHUNK, l->dx++;
  if (l->dx >= p->kernel_x) l->dx -= p->kernel_x, l->dy++;
  while (l->dy >= p->kernel_y) l->dy -= p->kernel_y, l->dz++;
  set_tap(p, l);
#elif defined(HN_A_ELEMENTS)
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) l->at[i] += 8 * CHUNK * p->a_col * (i64)sizeof(element);
#else
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) l->at[i] += 128;
#endif
}

#if defined(HN_A_ELEMENTS) || defined(HN_B_ELEMENTS)
/* A chunk whose elements lie `step` apart; the first `n` are there. */
HN_FN void gather_chunk(void *to, const element *from, i64 step, u32 n) {
  element e[CHUNK];
  HN_UNROLL for (u32 k = 0; k < CHUNK; k++) e[k] = k < n ? from[k * step] : (element)0;
  HN_UNROLL for (u32 k = 0; k < CHUNK; k++) ((element *)to)[k] = e[k];
}
HN_FN u32 present(const hn_product_args *p, u32 chunk) {
  u32 at = chunk * CHUNK;
  return at >= p->k ? 0 : p->k - at < CHUNK ? p->k - at : CHUNK;
}
#endif

HN_FN void load_a(const hn_product_args *p, loader *l, u8 *stage) {
  u32 first = threadIdx.x / 8, j = threadIdx.x % 8;
  bool in_k = l->chunk < p->k_chunks;
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
    u32 r = first + i * LOADERS;
    if (BM % LOADERS && r >= BM) break;
    bool in = in_k && (l->in >> i & 1);
#ifdef HN_A_ELEMENTS
    gather_chunk(stage + place(r, j), (const element *)(const void *)l->at[i], p->a_col, in ? present(p, l->chunk) : 0);
#else
#ifdef HN_OUTSIDE
    hn_cp_async16(stage + place(r, j), in ? l->at[i] : (const u8 *)p->codes.outside, 16);
#else
    hn_cp_async16(stage + place(r, j), in ? l->at[i] : l->a, in ? 16 : 0);
#endif
#endif
  }
  next_k(p, l);
}

/* B of the tile whose chunk for this thread is `chunk`; advances the places. */
HN_FN void load_b(const hn_product_args *p, loader *l, u8 *stage, u32 n0, u32 chunk) {
  u32 first = threadIdx.x / 8, j = threadIdx.x % 8;
  u8 *to = stage + BM * 128;
  HN_UNROLL for (u32 i = 0; i < ROWS_B; i++) {
#ifdef HN_B_LINES
    u32 at = threadIdx.x + i * THREADS, line = at / LINE_CHUNKS, c = at % LINE_CHUNKS;
    if (BN % LOADERS && at >= BN * 8) break;
    u32 k = (chunk - j) * CHUNK + line, n = n0 + c * CHUNK;
    bool in = k < p->k && n < p->n;
    hn_cp_async16(to + place_line(line, c), l->b + (in ? ((i64)k * p->b_row + n) * (i64)sizeof(element) : 0), in ? 16 : 0);
    (void)first;
#else
    u32 r = first + i * LOADERS;
    if (BN % LOADERS && r >= BN) break;
    bool in = chunk < p->k_chunks && (l->in >> (16 + i) & 1);
#ifdef HN_B_ELEMENTS
    gather_chunk(to + place(r, j), (const element *)(const void *)l->b_at[i], p->b_row, in ? present(p, chunk) : 0);
    l->b_at[i] += 8 * CHUNK * p->b_row * (i64)sizeof(element);
#else
    hn_cp_async16(to + place(r, j), in ? l->b_at[i] : l->b, in ? 16 : 0);
    l->b_at[i] += 128;
#endif
    (void)n0;
#endif
  }
}

#ifdef HN_SPLIT3
HN_FN void split(u32 x[4], u32 low[4]) {
  HN_UNROLL for (u32 k = 0; k < 4; k++) {
    float whole = hn_from_bits(x[k]);
    x[k] = hn_to_tf32(whole);
    low[k] = hn_to_tf32(whole - hn_from_bits(x[k]));
  }
}
#endif

/* One tile of K: the warp's steps of two chunks. */
HN_FN void multiply(const u8 *stage, u32 wm, u32 wn, u32 wk, hn_sum acc[TM][TN][4]) {
  u32 lane = threadIdx.x % 32;
  const u8 *a0 = stage + (wm * WM + (lane & 15)) * 128;
#ifndef HN_B_LINES
  const u8 *b0 = stage + BM * 128 + (wn * WN + (lane & 7) + ((lane >> 4) << 3)) * 128;
#endif
  HN_UNROLL for (u32 s = 0; s < 4 / WARPS_K; s++) {
    u32 step = s * WARPS_K + wk, a[TM][4], b[TN / 2][4];
    u32 ca = ((step * 2 + (lane >> 4)) ^ (lane & 7)) << 4;
    HN_UNROLL for (u32 i = 0; i < TM; i++) hn_ldmatrix4(a[i], a0 + i * 16 * 128 + ca);
#if defined(HN_B_LINES) && HN_IS_TF32
    HN_UNROLL for (u32 i = 0; i < TN / 2; i++) HN_UNROLL for (u32 h = 0; h < 4; h++) {
      u32 k = step * 8 + lane % 4 + h % 2 * 4, n = wn * WN + i * 16 + h / 2 * 8 + lane / 4;
      b[i][h] = *(const u32 *)(const void *)(stage + BM * 128 + place_line(k, n / 4) + n % 4 * 4);
    }
#elif defined(HN_B_LINES)
    HN_UNROLL for (u32 i = 0; i < TN / 2; i++)
        hn_ldmatrix4_trans(b[i], stage + BM * 128 + place_line(step * 16 + (lane & 15), wn * (WN / 8) + i * 2 + (lane >> 4)));
#else
    u32 cb = ((step * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) << 4;
    HN_UNROLL for (u32 i = 0; i < TN / 2; i++) hn_ldmatrix4(b[i], b0 + i * 16 * 128 + cb);
#endif
#ifdef HN_SPLIT3
    /* What rounding to tf32 leaves is small, and rounded in its turn: the products that count are three. */
    u32 al[TM][4], bl[TN / 2][4];
    HN_UNROLL for (u32 i = 0; i < TM; i++) split(a[i], al[i]);
    HN_UNROLL for (u32 i = 0; i < TN / 2; i++) split(b[i], bl[i]);
    HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 k = 0; k < TN; k++) {
      hn_mma(acc[i][k], al[i], &b[k / 2][k % 2 * 2]);
      hn_mma(acc[i][k], a[i], &bl[k / 2][k % 2 * 2]);
    }
#elif HN_IS_TF32
    HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 k = 0; k < 4; k++)
        a[i][k] = hn_to_tf32(hn_from_bits(a[i][k]));
#ifndef HN_B_ROUNDED
    HN_UNROLL for (u32 i = 0; i < TN / 2; i++) HN_UNROLL for (u32 k = 0; k < 4; k++)
        b[i][k] = hn_to_tf32(hn_from_bits(b[i][k]));
#endif
#endif
    HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 k = 0; k < TN; k++)
        hn_mma(acc[i][k], a[i], &b[k / 2][k % 2 * 2]);
  }
}

/* The warp's sums into its group's rows of shared memory. */
HN_FN void put_sums(hn_sum *sums, u32 wm, u32 wn, u32 wk, hn_sum acc[TM][TN][4]) {
  u32 lane = threadIdx.x % 32;
  hn_sum *to = sums + ((i64)wk * BM + wm * WM + lane / 4) * HN_SUMS_PITCH + wn * WN + lane % 4 * 2;
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 k = 0; k < TN; k++) {
    hn_sum2 low = {{acc[i][k][0], acc[i][k][1]}}, high = {{acc[i][k][2], acc[i][k][3]}};
    *(hn_sum2 *)(to + i * 16 * HN_SUMS_PITCH + k * 8) = low;
    *(hn_sum2 *)(to + (i * 16 + 8) * HN_SUMS_PITCH + k * 8) = high;
  }
}

HN_KERNEL_BOUNDS(product_mma, hn_product_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(u8, shared);
  const hn_product_args *p = &args;
  u32 warp = threadIdx.x / 32, wk = warp / (WARPS_M * WARPS_N), wm = warp % WARPS_M, wn = warp / WARPS_M % WARPS_N;
  u32 split, tile, batch, m0, n0;
  hn_product_tile(p, &tile, &split, &batch, &m0, &n0);
  loader l;
  i64 a_at, b_at;
  hn_product_at(p, batch, &a_at, &b_at);
  l.a = (const u8 *)p->a + a_at * (i64)sizeof(element);
  l.b = (const u8 *)p->b + b_at * (i64)sizeof(element);
  l.in = 0;
  begin_rows(p, &l, m0, threadIdx.x / 8);
  u32 t0 = split * p->split_tiles, tiles = (p->k_chunks + 7) / 8;
  u32 count = t0 >= tiles ? 0 : tiles - t0 < p->split_tiles ? tiles - t0 : p->split_tiles;
  begin_k(p, &l, t0 * 8 + threadIdx.x % 8);
  begin_columns(p, &l, n0, threadIdx.x / 8);
  hn_sum acc[TM][TN][4];
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 k = 0; k < TN; k++) HN_UNROLL for (u32 e = 0; e < 4; e++)
      acc[i][k][e] = 0;
  HN_GRID_GO();
#ifdef HN_B_PACKED /* weights do not wait for the kernel before this one */
  for (u32 s = 0; s < STAGES - 1 && s < count; s++) load_b(p, &l, shared + s * STAGE_BYTES, n0, l.chunk + s * 8);
#endif
  HN_GRID_WAIT();
  for (u32 s = 0; s < STAGES - 1; s++) {
    if (s < count) {
#ifndef HN_B_PACKED
      load_b(p, &l, shared + s * STAGE_BYTES, n0, l.chunk);
#endif
      load_a(p, &l, shared + s * STAGE_BYTES);
    }
    hn_cp_async_commit();
  }
  u8 *now = shared, *next = shared + (STAGES - 1) * STAGE_BYTES, *end = shared + STAGES * STAGE_BYTES;
  for (u32 t = 0; t < count; t++) {
    HN_CP_ASYNC_WAIT(STAGES - 2);
    HN_SYNC();
    if (t + STAGES - 1 < count) {
      load_b(p, &l, next, n0, l.chunk);
      load_a(p, &l, next);
    }
    hn_cp_async_commit();
    multiply(now, wm, wn, wk, acc);
    if ((next += STAGE_BYTES) == end) next = shared;
    if ((now += STAGE_BYTES) == end) now = shared;
  }
  HN_CP_ASYNC_WAIT(0);
  HN_SYNC();
  hn_sum *sums = (hn_sum *)(void *)shared;
  put_sums(sums, wm, wn, wk, acc);
  HN_SYNC();
  hn_product_finish(p, sums, WARPS_K, tile, split, batch, m0, n0);
}
