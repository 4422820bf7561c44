/* Matrix products in exact f32 arithmetic, for operands of any type and any distances: implicit-GEMM convolution
 * and matrices (product_args.h).
 *
 * A block of 256 threads computes BM x BN over its share of K; a thread holds (BM / 16) x (BN / 16) sums. Tiles of
 * 16 elements of K lie in shared memory twice, K by K, so that a thread reads its operands 16 bytes at a time: the
 * next tile is fetched into registers (A, which is turned on its way) and by cp.async (B) during the arithmetic.
 *
 * Prefix: HN_A, HN_B types of the operands; HN_A_CHUNKS: f32 whose taps are whole chunks; HN_B_LINES: f32 whose
 * rows are lines of whole chunks; HN_ONE_TAP; and those of product.cuh. */
#include "prelude.cuh"

#define THREADS 256
#include "product.cuh"

#define KT 16
#define TM (BM / 16)
#define TN (BN / 16)
#define AP (BM + 4) /* floats of a row of A's tile: turning meets two-way conflicts at most */
#define TILE (KT * (AP + BN))
#define ROWS_A (BM / 64)        /* of A's chunks, 4 in a row of 16 elements, that a thread fetches */
#define CHUNKS_B (BN * KT / 4)  /* of B's tile */
#define MINE_B ((CHUNKS_B + THREADS - 1) / THREADS)

typedef struct loader {
  i64 a, b;         /* of this product, in elements */
  i64 row[ROWS_A];  /* element of the row's first tap; may lie before the image */
  i32 z[ROWS_A], y[ROWS_A], x[ROWS_A];
  u32 k;            /* first element of the thread's chunk in the tile that comes next */
  u32 c;            /* element within the tap */
  i32 dz, dy, dx;   /* the tap */
} loader;

HN_FN void begin_rows(const hn_product_args *p, loader *l, u32 m0) {
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
    u32 m = m0 + threadIdx.x / 4 + i * 64;
    u32 x = m % p->grid_x, rest = m / p->grid_x, y = rest % p->grid_y, z = rest / p->grid_y;
    u32 image = z / p->grid_z;
    z -= image * p->grid_z;
    l->z[i] = (i32)z * p->stride_z - p->pad_z;
    l->y[i] = (i32)y * p->stride_y - p->pad_y;
    l->x[i] = (i32)x * p->stride_x - p->pad_x;
    l->row[i] = l->a + (i64)image * p->image + (((i64)l->z[i] * p->in_y + l->y[i]) * p->in_x + l->x[i]) * p->pixel;
    if (m >= p->m) l->y[i] = -0x40000000; /* outside for every tap */
  }
}

HN_FN void begin_k(const hn_product_args *p, loader *l, u32 k) {
  u32 tap = k / p->tap;
  l->k = k;
  l->c = k - tap * p->tap;
  l->dx = (i32)(tap % (u32)p->kernel_x);
  tap /= (u32)p->kernel_x;
  l->dy = (i32)(tap % (u32)p->kernel_y);
  l->dz = (i32)(tap / (u32)p->kernel_y);
}

/* `step` elements of K on. */
HN_FN void advance(const hn_product_args *p, loader *l, u32 step) {
  l->k += step;
  l->c += step;
#ifndef HN_ONE_TAP
  while (l->c >= p->tap) {
    l->c -= p->tap;
    if (++l->dx == p->kernel_x) {
      l->dx = 0;
      if (++l->dy == p->kernel_y) l->dy = 0, l->dz++;
    }
  }
#endif
}

/* Element of row i of A at the loader's place, where it is; -1: it is a zero. */
HN_FN i64 place_a(const hn_product_args *p, const loader *l, u32 i) {
  if (l->k >= p->k || l->c >= p->channels) return -1;
#ifdef HN_ONE_TAP
  return l->y[i] < 0 ? -1 : l->row[i] + l->c * p->a_col;
#else
  i32 z = l->dz * p->dilation_z, y = l->dy * p->dilation_y, x = l->dx * p->dilation_x;
  if ((u32)(l->z[i] + z) >= (u32)p->in_z || (u32)(l->y[i] + y) >= (u32)p->in_y || (u32)(l->x[i] + x) >= (u32)p->in_x)
    return -1;
  return l->row[i] + (((i64)z * p->in_y + y) * p->in_x + x) * p->pixel + l->c * p->a_col;
#endif
}

/* The thread's chunks of A of the next tile. */
HN_FN void fetch_a(const hn_product_args *p, loader *l, float a[ROWS_A][4]) {
#ifdef HN_A_CHUNKS
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
    i64 at = place_a(p, l, i);
    hn_u4 v = {{0, 0, 0, 0}};
    if (at >= 0) v = hn_ld16((const float *)p->a + at);
    HN_UNROLL for (u32 e = 0; e < 4; e++) a[i][e] = hn_from_bits(v.v[e]);
  }
  advance(p, l, KT);
#else
  HN_UNROLL for (u32 e = 0; e < 4; e++) {
    HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) {
      i64 at = place_a(p, l, i);
      a[i][e] = at >= 0 ? HN_JOIN(hn_load_, HN_A)(p->a, at) : 0;
    }
    advance(p, l, e < 3 ? 1 : KT - 3);
  }
#endif
}

HN_FN void turn_a(float *tile, float a[ROWS_A][4]) {
  u32 j = threadIdx.x % 4;
  HN_UNROLL for (u32 i = 0; i < ROWS_A; i++) HN_UNROLL for (u32 e = 0; e < 4; e++)
      tile[(j * 4 + e) * AP + threadIdx.x / 4 + i * 64] = a[i][e];
}

/* B's tile that begins at element k0 of K: behind the computation, or element by element. */
HN_FN void load_b(const hn_product_args *p, const loader *l, float *tile, u32 k0, u32 n0) {
  float *to = tile + KT * AP;
  HN_UNROLL for (u32 i = 0; i < MINE_B; i++) {
    u32 at = threadIdx.x + i * THREADS, line = at / (BN / 4), c = at % (BN / 4) * 4;
    if (CHUNKS_B % THREADS && at >= CHUNKS_B) break;
    u32 k = k0 + line, n = n0 + c;
#ifdef HN_B_LINES
    bool in = k < p->k && n < p->n;
    hn_cp_async16(to + line * BN + c, (const float *)p->b + (in ? l->b + (i64)k * p->b_row + n : 0), in ? 16 : 0);
#else
    u32 tap = k / p->tap, within = k - tap * p->tap;
    i64 row = l->b + (i64)tap * p->b_tap + (i64)within * p->b_row;
    bool in = k < p->k && within < p->channels;
    HN_UNROLL for (u32 e = 0; e < 4; e++)
        to[line * BN + c + e] = in && n + e < p->n ? HN_JOIN(hn_load_, HN_B)(p->b, row + (i64)(n + e) * p->b_col) : 0;
#endif
  }
}

/* 4 floats of shared memory (16-byte aligned). */
typedef struct hn_f4 {
  float v[4];
} __attribute__((aligned(16))) hn_f4;

HN_FN void multiply(const float *tile, float acc[TM][TN]) {
  const float *a0 = tile + threadIdx.x / 16 * 4, *b0 = tile + KT * AP + threadIdx.x % 16 * 4;
  HN_UNROLL for (u32 k = 0; k < KT; k++) {
    hn_f4 a[TM / 4], b[TN / 4];
    HN_UNROLL for (u32 i = 0; i < TM / 4; i++) a[i] = *(const hn_f4 *)(const void *)(a0 + k * AP + i * 64);
    HN_UNROLL for (u32 i = 0; i < TN / 4; i++) b[i] = *(const hn_f4 *)(const void *)(b0 + k * BN + i * 64);
    HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 j = 0; j < TN; j++)
        acc[i][j] = fmaf(a[i / 4].v[i % 4], b[j / 4].v[j % 4], acc[i][j]);
  }
}

HN_KERNEL_BOUNDS(product_simt, hn_product_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(float, shared);
  const hn_product_args *p = &args;
  u32 split, tile, batch, m0, n0;
  hn_product_tile(p, &tile, &split, &batch, &m0, &n0);
  loader l;
  hn_product_at(p, batch, &l.a, &l.b);
  begin_rows(p, &l, m0);
  u32 t0 = split * p->split_tiles, tiles = (p->k + KT - 1) / KT;
  u32 count = t0 >= tiles ? 0 : tiles - t0 < p->split_tiles ? tiles - t0 : p->split_tiles;
  begin_k(p, &l, t0 * KT + threadIdx.x % 4 * 4);
  float acc[TM][TN], a[ROWS_A][4];
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 j = 0; j < TN; j++) acc[i][j] = 0;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (count) {
    load_b(p, &l, shared, t0 * KT, n0);
    hn_cp_async_commit();
    fetch_a(p, &l, a);
    turn_a(shared, a);
  }
  for (u32 t = 0; t < count; t++) {
    float *now = shared + t % 2 * TILE, *next = shared + (t + 1) % 2 * TILE;
    HN_CP_ASYNC_WAIT(0);
    HN_SYNC();
    if (t + 1 < count) {
      load_b(p, &l, next, (t0 + t + 1) * KT, n0);
      hn_cp_async_commit();
      fetch_a(p, &l, a);
    }
    multiply(now, acc);
    if (t + 1 < count) turn_a(next, a);
  }
  HN_SYNC();
  HN_UNROLL for (u32 i = 0; i < TM; i++) HN_UNROLL for (u32 h = 0; h < TN / 4; h++) {
    hn_f4 v = {{acc[i][h * 4], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]}};
    u32 r = i / 4 * 64 + threadIdx.x / 16 * 4 + i % 4, c = h * 64 + threadIdx.x % 16 * 4;
    *(hn_f4 *)(void *)(shared + r * HN_SUMS_PITCH + c) = v;
  }
  HN_SYNC();
  hn_product_finish(p, shared, 1, tile, split, batch, m0, n0);
}
