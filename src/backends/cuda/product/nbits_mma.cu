/* Products by weights that are codes of 4 or 8 bits (MatMulNBits) on tensor cores, by mma.sync.
 *
 * Weights stand on the left: sixteen columns of B are the rows of an mma's first operand, eight rows of A the columns of
 * its second one, so that few rows waste little. Codes go from memory to registers, 16 bytes a thread, once for each BM
 * rows; there they become whole numbers, code less zero point, which f16 and bf16 hold exactly. Scales are factors of the
 * sums of 32 products (or 16) in f32: no weight is rounded. f32 rows are cut into PARTS of bf16, which together have 24
 * bits (3) or 16 (2).
 *
 * A block computes BM x BN of the output over its share of K, in tiles of KT rows of K: A's part lies in shared memory, as
 * 16-bit numbers, in a ring of STAGES. A warp has STRIPS x 16 columns and HELD groups of a tile's K; the next tile's codes
 * are on their way while it multiplies. Sums of the warps and of the blocks that share a tile meet as product.cuh says.
 *
 * K within 32: a thread of a quad has eight elements that lie together (of blocks of 16 two times four), as 16 bytes of A
 * and as 4 or 8 bytes of codes. Packed weights, one behind the other, by strips of 16 columns:
 *   codes    [strip][group][32 threads][16 bytes], a group being 64 rows of K (8 bits: 32)
 *   scales   [strip][span][8][units][2]  f16 (of f32 rows f32); a span is a block or a group, the larger one, its units the
 *            scales in a group; thread g of eight has columns g and g + 8
 *   zeros    the same as bytes or f32; HN_ZEROS 0: none
 *   factors  [strip][16] f32, of f16 scales: what a column's sums have to be multiplied by
 *
 * Prefix: HN_T f16 | bf16 | f32, HN_BITS, HN_BLOCK (rows of K with one scale, no more than a group's), HN_SPAN (groups with
 * one scale), HN_GROUPS and HN_SPANS of a column, HN_ZEROS (0, 1 codes, 2 floats less HN_MIDDLE), HN_MIDDLE (the zero point where there is none), BM, STRIPS, WARPS_N,
 * WARPS_K, HELD, STAGES, PARTS, BLOCKS; HN_A_CHUNKS: rows of A are whole 16 bytes; and those of product.cuh. */
#include "prelude.cuh"

#define BN (16 * STRIPS * WARPS_N)
#define THREADS (32 * WARPS_N * WARPS_K)
#include "product.cuh"

#define HN_IS_f16 16
#define HN_IS_bf16 17
#define HN_IS_f32 32
#define KIND HN_JOIN(HN_IS_, HN_T)
#if KIND == 16
#define BASE 0x64006400u /* 1024, whose last bits count ones */
#define ONES 0x3c003c00u
#define multiply_add hn_mma_f16
#define subtract hn_sub_f16x2
#else
#define BASE 0x43004300u /* 128 */
#define ONES 0x3f803f80u
#define multiply_add hn_mma_bf16
#define subtract hn_sub_bf16x2
#endif

#define GROUP (256 / HN_BITS) /* rows of K that a thread's 16 bytes are of, with those of its quad */
#define CHUNKS (GROUP / 32)
#define UNITS (GROUP / HN_BLOCK)
#define IN_CHUNK (HN_BLOCK < 32 ? 2 : 1) /* sums of a chunk that have scales of their own */
#define KT (GROUP * HELD * WARPS_K)
#define PITCH (KT * 2 + 64) /* bytes: 128-byte lines of odd and even rows lie in other banks */
#define PLANE (BM * PITCH)
#define STAGE_BYTES (PARTS * PLANE)
#define MT (BM / 8)
#define PIECES (BM * (KT / 8)) /* eights of a stage */
#define EACH ((PIECES + THREADS - 1) / THREADS)
#if KIND == 32
#define SCALE_WORDS (2 * UNITS)
#else
#define SCALE_WORDS UNITS
#endif
#if HN_ZEROS == 2
#define ZERO_BYTES (8 * UNITS)
#else
#define ZERO_BYTES (2 * UNITS)
#endif

typedef struct words {
  u32 v[4];
} __attribute__((aligned(16))) words;

/* What a thread has of a group of K. */
typedef struct held {
  hn_u4 codes[STRIPS];
  u32 scale[STRIPS][SCALE_WORDS];
#if HN_ZEROS
  u32 zero[STRIPS][(ZERO_BYTES + 3) / 4];
#endif
} held;

typedef struct place {
  const u8 *codes, *scales, *zeros; /* of the warp's first strip */
  i32 strips;                       /* that there are */
} place;

/* `bytes` is a constant: 2, 4, or a multiple of 8. */
HN_FN void load_words(u32 *to, const u8 *from, u32 bytes) {
  if (bytes == 2) {
    to[0] = *(const u16 *)(const void *)from;
  } else if (bytes == 4) {
    to[0] = *(const u32 *)(const void *)from;
  } else {
    HN_UNROLL for (u32 i = 0; i < bytes / 8; i++) {
      const u64 v = *(const u64 *)(const void *)(from + 8 * i);
      to[2 * i] = (u32)v, to[2 * i + 1] = (u32)(v >> 32);
    }
  }
}

/* Nothing from group `end` on. */
HN_FN void load_weights(const place *p, u32 group, u32 end, held *h) {
  const u32 lane = threadIdx.x % 32, span = group / HN_SPAN;
  HN_UNROLL for (i32 s = 0; s < STRIPS; s++) {
    const bool in = group < end && s < p->strips;
    HN_UNROLL for (u32 e = 0; e < 4; e++) h->codes[s].v[e] = 0;
    HN_UNROLL for (u32 e = 0; e < SCALE_WORDS; e++) h->scale[s][e] = 0;
#if HN_ZEROS
    HN_UNROLL for (u32 e = 0; e < (ZERO_BYTES + 3) / 4; e++) h->zero[s][e] = 0;
#endif
    if (!in) continue;
    const i64 at = ((i64)s * HN_SPANS + span) * 8 + lane / 4;
    h->codes[s] = hn_ld16(p->codes + ((i64)s * HN_GROUPS + group) * 512);
    load_words(h->scale[s], p->scales + at * (SCALE_WORDS * 4), SCALE_WORDS * 4);
#if HN_ZEROS
    load_words(h->zero[s], p->zeros + at * ZERO_BYTES, ZERO_BYTES);
#endif
  }
}

/* ---- codes as numbers: BASE and a code are the code's bits below BASE's */
#if HN_BITS == 8 && KIND != 16
typedef float zero;
HN_FN float whole(u32 word, u32 byte) { return hn_from_bits(hn_bytes(word, 0x4b000000u, 0x7440u | byte)); } /* on 2^23 */
HN_FN zero zero_of(u32 word, u32 byte) { return whole(word, byte); }
#else
typedef u32 zero;
HN_FN zero zero_of(u32 word, u32 byte) { return hn_bytes(word, BASE, 0x5050u | byte | byte << 8); }
#endif

/* A thread's eight codes of a column, less z[0], or the last four less z[1], as pairs. */
HN_FN void open(const u32 *w, const zero z[IN_CHUNK], u32 x[4]) {
  HN_UNROLL for (u32 p = 0; p < 4; p++) {
    const zero less = z[p / 2 * (IN_CHUNK - 1)];
#if HN_BITS == 4
    x[p] = subtract((w[0] >> 4 * p & 0x000f000fu) | BASE, less);
#elif KIND == 16
    x[p] = subtract(hn_bytes(w[p / 2], BASE, p % 2 ? 0x5352u : 0x5150u), less);
#else /* whole numbers up to 255 are in the upper halves alone */
    const u32 a = hn_bits(whole(w[p / 2], p % 2 * 2) - less), b = hn_bits(whole(w[p / 2], p % 2 * 2 + 1) - less);
    x[p] = hn_bytes(a, b, 0x7632u);
#endif
  }
}

/* Scale, or float zero point, i of a unit: 0 of column g, 1 of g + 8. */
HN_FN float scale_of(const u32 scale[SCALE_WORDS], u32 unit, u32 i) {
#if KIND == 32
  return hn_from_bits(scale[unit * 2 + i]);
#else
  return hn_f16((u16)(scale[unit] >> 16 * i));
#endif
}

/* Eight elements of a row of A, from the chunk's first one on. */
HN_FN words read_row(const u8 *row) {
  const u32 t = threadIdx.x % 4;
#if HN_BLOCK == 16
  words v;
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const u64 x = *(const u64 *)(const void *)(row + t * 8 + h * 32);
    v.v[2 * h] = (u32)x, v.v[2 * h + 1] = (u32)(x >> 32);
  }
  return v;
#else
  return *(const words *)(const void *)(row + t * 16);
#endif
}

/* acc += a group of K. rows: the thread's row of A, of eight, in the group's columns. */
HN_FN void multiply(const u8 *rows, const held *h, float acc[STRIPS][MT][4]) {
  HN_UNROLL for (u32 c = 0; c < CHUNKS; c++) {
    words a[PARTS][MT];
    HN_UNROLL for (u32 k = 0; k < PARTS; k++) HN_UNROLL for (u32 j = 0; j < MT; j++)
        a[k][j] = read_row(rows + k * PLANE + j * 8 * PITCH + c * 64);
#if HN_ZEROS == 2
    const u32 ones[4] = {ONES, ONES, ONES, ONES};
    float whole_row[IN_CHUNK][MT][4];
    HN_UNROLL for (u32 u = 0; u < IN_CHUNK; u++) HN_UNROLL for (u32 j = 0; j < MT; j++) {
      HN_UNROLL for (u32 e = 0; e < 4; e++) whole_row[u][j][e] = 0;
      HN_UNROLL for (u32 s = u; s < 2; s += IN_CHUNK) HN_UNROLL for (u32 k = PARTS; k-- > 0;)
          multiply_add(whole_row[u][j], ones, a[k][j].v + 2 * s);
    }
#endif
    HN_UNROLL for (u32 s = 0; s < STRIPS; s++) {
      u32 x[2][4];
      HN_UNROLL for (u32 i = 0; i < 2; i++) {
        zero z[IN_CHUNK];
        HN_UNROLL for (u32 u = 0; u < IN_CHUNK; u++) {
#if HN_ZEROS == 1
          const u32 byte = (c * 32 + u * 16) / HN_BLOCK * 2 + i;
          z[u] = zero_of(h->zero[s][byte / 4], byte % 4);
#else
          z[u] = zero_of(HN_MIDDLE, 0);
#endif
        }
#if HN_BITS == 4
        open(h->codes[s].v + 2 * c + i, z, x[i]);
#else
        open(h->codes[s].v + 2 * i, z, x[i]);
#endif
      }
      HN_UNROLL for (u32 u = 0; u < IN_CHUNK; u++) {
        const u32 unit = (c * 32 + u * 16) / HN_BLOCK;
        const float scale[2] = {scale_of(h->scale[s], unit, 0), scale_of(h->scale[s], unit, 1)};
        float sum[MT][4];
        HN_UNROLL for (u32 j = 0; j < MT; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) sum[j][e] = 0;
        HN_UNROLL for (u32 t = u; t < 2; t += IN_CHUNK) {
          const u32 w[4] = {x[0][2 * t], x[1][2 * t], x[0][2 * t + 1], x[1][2 * t + 1]};
          HN_UNROLL for (u32 k = PARTS; k-- > 0;) HN_UNROLL for (u32 j = 0; j < MT; j++)
              multiply_add(sum[j], w, a[k][j].v + 2 * t);
        }
        HN_UNROLL for (u32 j = 0; j < MT; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) {
#if HN_ZEROS == 2
          sum[j][e] -= hn_from_bits(h->zero[s][unit * 2 + e / 2]) * whole_row[u][j][e];
#endif
          acc[s][j][e] += scale[e / 2] * sum[j][e];
        }
      }
    }
  }
}

/* ---- rows of A into shared memory */
#if defined(HN_A_CHUNKS) && KIND != 32
HN_FN void load_rows(const hn_product_args *p, u8 *stage, u32 m0, u32 tile) {
  HN_UNROLL for (u32 i = threadIdx.x; i < PIECES; i += THREADS) {
    const u32 r = i / (KT / 8), c = i % (KT / 8), k = tile * KT + c * 8;
    const bool in = m0 + r < p->m && k < p->k;
    hn_cp_async16(stage + r * PITCH + c * 16, in ? (const u16 *)p->a + (i64)(m0 + r) * p->pixel + k : (const u16 *)p->a, in ? 16 : 0);
  }
}
#else
/* In two steps: from memory to registers, and from there, in parts. */
#if KIND == 32
typedef float piece[8];
#else
typedef u16 piece[8];
#endif
HN_FN void fetch(const hn_product_args *p, u32 m0, u32 tile, piece x[EACH]) {
  HN_UNROLL for (u32 i = 0; i < EACH; i++) {
    const u32 at = threadIdx.x + i * THREADS, r = at / (KT / 8), k = tile * KT + at % (KT / 8) * 8;
    const i64 from = (i64)(m0 + r) * p->pixel + k;
    const u32 left = at < PIECES && m0 + r < p->m && k < p->k ? p->k - k : 0;
#if KIND == 32 && defined(HN_A_CHUNKS)
    HN_UNROLL for (u32 h = 0; h < 8; h += 4) {
      hn_u4 v = {{0, 0, 0, 0}};
      if (h < left) v = hn_ld16((const float *)p->a + from + h);
      HN_UNROLL for (u32 e = 0; e < 4; e++) x[i][h + e] = hn_from_bits(v.v[e]);
    }
#elif KIND == 32
    HN_UNROLL for (u32 e = 0; e < 8; e++) x[i][e] = e < left ? ((const float *)p->a)[from + e] : 0;
#else
    HN_UNROLL for (u32 e = 0; e < 8; e++) x[i][e] = e < left ? ((const u16 *)p->a)[from + e] : (u16)0;
#endif
  }
}

#if KIND == 32
/* The upper half of x, and what it leaves; nothing of infinities. */
HN_FN u32 cut(float *x) {
  const u32 top = hn_bits(*x) & 0xffff0000u;
  *x = hn_from_bits(top) == *x ? 0 : *x - hn_from_bits(top);
  return top;
}
#endif

HN_FN void put_rows(u8 *stage, piece x[EACH]) {
  HN_UNROLL for (u32 i = 0; i < EACH; i++) {
    const u32 at = threadIdx.x + i * THREADS;
    u8 *to = stage + at / (KT / 8) * PITCH + at % (KT / 8) * 16;
    if (at >= PIECES) break;
    HN_UNROLL for (u32 k = 0; k < PARTS; k++) {
      words v;
#if KIND == 32
      HN_UNROLL for (u32 e = 0; e < 4; e++) {
        const u32 low = cut(&x[i][2 * e]), high = cut(&x[i][2 * e + 1]);
        v.v[e] = hn_bytes(low, high, 0x7632u);
      }
#else
      HN_UNROLL for (u32 e = 0; e < 4; e++) v.v[e] = x[i][2 * e] | (u32)x[i][2 * e + 1] << 16;
#endif
      *(words *)(void *)(to + k * PLANE) = v;
    }
  }
}
#endif

HN_KERNEL_BOUNDS(nbits_mma, hn_product_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(u8, shared);
  const hn_product_args *p = &args;
  const u32 lane = threadIdx.x % 32, wn = threadIdx.x / 32 % WARPS_N, wk = threadIdx.x / (32 * WARPS_N);
  u32 split, tile, batch, m0, n0;
  hn_product_tile(p, &tile, &split, &batch, &m0, &n0);
  const i64 strips = (p->n + 15) / 16, first = n0 / 16 + wn * STRIPS;
  const u8 *scales = (const u8 *)p->b + strips * HN_GROUPS * 512, *zeros = scales + strips * HN_SPANS * (32 * SCALE_WORDS);
  const place weights = {(const u8 *)p->b + first * HN_GROUPS * 512 + lane * 16,
                         scales + first * HN_SPANS * (32 * SCALE_WORDS), zeros + first * HN_SPANS * (8 * ZERO_BYTES),
                         (i32)(strips - first)};
  const u32 t0 = split * p->split_tiles, tiles = (HN_GROUPS + HELD * WARPS_K - 1) / (HELD * WARPS_K);
  const u32 count = t0 >= tiles ? 0 : tiles - t0 < p->split_tiles ? tiles - t0 : p->split_tiles;
  const u32 end = min((t0 + count) * (HELD * WARPS_K), (u32)HN_GROUPS);
  u32 group = (t0 * WARPS_K + wk) * HELD;
  float acc[STRIPS][MT][4];
  HN_UNROLL for (u32 s = 0; s < STRIPS; s++) HN_UNROLL for (u32 j = 0; j < MT; j++) HN_UNROLL for (u32 e = 0; e < 4; e++)
      acc[s][j][e] = 0;
  HN_GRID_GO();
  held h[HELD];
  HN_UNROLL for (u32 i = 0; i < HELD; i++) load_weights(&weights, group + i, end, &h[i]);
  HN_GRID_WAIT();
  const u32 row = lane / 4 * PITCH + wk * (HELD * GROUP * 2);
#if defined(HN_A_CHUNKS) && KIND != 32
  for (u32 s = 0; s < STAGES - 1; s++) {
    if (s < count) load_rows(p, shared + s * STAGE_BYTES, m0, t0 + s);
    hn_cp_async_commit();
  }
#else
  piece x[EACH];
  if (count) {
    fetch(p, m0, t0, x);
    put_rows(shared, x);
  }
#endif
  for (u32 t = 0; t < count; t++) {
    const u8 *now = shared + t % STAGES * STAGE_BYTES + row;
#if defined(HN_A_CHUNKS) && KIND != 32
    HN_CP_ASYNC_WAIT(STAGES - 2);
    HN_SYNC();
    if (t + STAGES - 1 < count) load_rows(p, shared + (t + STAGES - 1) % STAGES * STAGE_BYTES, m0, t0 + t + STAGES - 1);
    hn_cp_async_commit();
#else
    HN_SYNC();
    if (t + 1 < count) fetch(p, m0, t0 + t + 1, x);
#endif
    group += HELD * WARPS_K;
    HN_UNROLL for (u32 i = 0; i < HELD; i++) {
      multiply(now + i * (GROUP * 2), &h[i], acc);
      load_weights(&weights, group + i, end, &h[i]);
    }
#if !defined(HN_A_CHUNKS) || KIND == 32
    if (t + 1 < count) put_rows(shared + (t + 1) % STAGES * STAGE_BYTES, x);
#endif
  }
  HN_CP_ASYNC_WAIT(0);
  HN_SYNC();
  float *sums = (float *)(void *)shared;
  HN_UNROLL for (i32 s = 0; s < STRIPS; s++) {
    float factor[2] = {1, 1};
#if KIND != 32
    const float *factors = (const float *)(const void *)(zeros + (HN_ZEROS ? strips * HN_SPANS * (8 * ZERO_BYTES) : 0));
    HN_UNROLL for (u32 i = 0; i < 2; i++)
      if (s < weights.strips) factor[i] = factors[(first + s) * 16 + lane / 4 + 8 * i];
#endif
    HN_UNROLL for (u32 j = 0; j < MT; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) {
      const u32 m = j * 8 + lane % 4 * 2 + e % 2, n = (wn * STRIPS + (u32)s) * 16 + lane / 4 + e / 2 * 8;
      sums[((i64)wk * BM + m) * HN_SUMS_PITCH + n] = acc[s][j][e] * factor[e / 2];
    }
  }
  HN_SYNC();
  hn_product_finish(p, sums, WARPS_K, tile, split, batch, m0, n0);
}
