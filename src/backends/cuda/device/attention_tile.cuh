/* What kernels of attention on tensor cores do with a tile: a warp's 16 rows of Q against KEYS keys and their
 * values, which lie in shared memory. A row's result is kept unnormalised with its maximum and sum so far, and rescaled when
 * the maximum grows (online softmax). Scores become weights in registers: the layout of mma's sums is that of its first
 * operand. Rows in shared memory have one chunk (16 bytes) more than elements, an odd number: no bank conflicts.
 *
 * Prefix: HN_T f16 | bf16 | f32; DEPTH, DEPTH_V (columns of Q and V, rounded up to 16), WARPS, PARTS, KEYS;
 * HN_SPLIT3: f32 as three products of tf32 parts, else f32 is rounded to tf32; HN_VECTORS: bytes (4, 8, 16) of which all
 * operands' rows are multiples; HN_CODES_IN: whoever includes this brings rows of codes itself. */
#ifndef HN_ATTENTION_TILE_CUH
#define HN_ATTENTION_TILE_CUH

#include "math.cuh"

#define HN_IS_f32 1
#define HN_IS_f16 0
#define HN_IS_bf16 0
#define WIDE HN_JOIN(HN_IS_, HN_T)
#if WIDE
#define CHUNK 4
typedef float element;
#else
#define CHUNK 8
typedef u16 element;
#define hn_mma HN_JOIN(hn_mma_, HN_T)
#define hn_to_x2 HN_JOIN(HN_JOIN(hn_to_, HN_T), x2)
#endif
#define GROUP (32 * WARPS)
#define THREADS (GROUP * PARTS)
#define ROWS (16 * WARPS)
#define QP (DEPTH + CHUNK)   /* elements from row to row of Q and K */
#define VP (DEPTH_V + CHUNK) /* of V */
#define STEP (2 * CHUNK)     /* K of one mma */
#define AP (DEPTH_V + 8)     /* floats from row to row of a part's result */
#define NEVER hn_from_bits(0xff800000u) /* -infinity */

#ifndef HN_CODES_IN
/* `n` rows from `row` on into shared memory, zeros beyond `rows` and beyond `columns`; by `threads` threads. */
HN_FN void load_rows(u32 thread, u32 threads, element *to, u32 pitch, const element *from, i64 row_step, i64 col_step, u32 row, u32 rows, u32 n,
                     u32 columns, u32 width) {
#ifdef HN_VECTORS
  enum { EACH = HN_VECTORS / sizeof(element) };
#else
  enum { EACH = CHUNK };
#endif
  u32 chunks = width / EACH;
  for (u32 i = thread; i < n * chunks; i += threads) {
    u32 r = i / chunks, c = i % chunks * EACH;
    element *at = to + r * pitch + c;
    const element *source = from + (i64)(row + r) * row_step + c * col_step;
#ifdef HN_VECTORS
    bool in = row + r < rows && c < columns;
    HN_JOIN(hn_cp_async, HN_VECTORS)(at, in ? source : from, in ? HN_VECTORS : 0);
#else
    element e[CHUNK];
    HN_UNROLL for (u32 k = 0; k < CHUNK; k++)
        e[k] = row + r < rows && c + k < columns ? source[k * col_step] : (element)0;
    HN_UNROLL for (u32 k = 0; k < CHUNK; k++) at[k] = e[k];
#endif
  }
}
#endif

#if WIDE
/* d += a b, operands f32 bits. */
HN_FN void multiply(float d[4], const u32 a[4], const u32 b[2]) {
  u32 ah[4], bh[2];
  HN_UNROLL for (u32 k = 0; k < 4; k++) ah[k] = hn_to_tf32(hn_from_bits(a[k]));
  HN_UNROLL for (u32 k = 0; k < 2; k++) bh[k] = hn_to_tf32(hn_from_bits(b[k]));
#ifdef HN_SPLIT3
  u32 al[4], bl[2];
  HN_UNROLL for (u32 k = 0; k < 4; k++) al[k] = hn_to_tf32(hn_from_bits(a[k]) - hn_from_bits(ah[k]));
  HN_UNROLL for (u32 k = 0; k < 2; k++) bl[k] = hn_to_tf32(hn_from_bits(b[k]) - hn_from_bits(bh[k]));
  hn_mma_tf32(d, al, bh);
  hn_mma_tf32(d, ah, bl);
#endif
  hn_mma_tf32(d, ah, bh);
}
#else
#define multiply hn_mma
#endif

HN_FN float quad_max(float x) {
  x = fmaxf(x, hn_shfl_xor(x, 1));
  return fmaxf(x, hn_shfl_xor(x, 2));
}
HN_FN float quad_sum(float x) {
  x += hn_shfl_xor(x, 1);
  return x + hn_shfl_xor(x, 2);
}

/* Scores of the warp's rows with one block of keys. */
HN_FN void make_scores(const element *q, const element *k, float s[KEYS / 8][4]) {
  u32 lane = threadIdx.x % 32;
  HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) s[j][e] = 0;
  HN_UNROLL for (u32 d = 0; d < DEPTH; d += STEP) {
    u32 a[4];
    hn_ldmatrix4(a, q + (lane & 15) * QP + d + (lane >> 4) * CHUNK);
    HN_UNROLL for (u32 j = 0; j < KEYS / 8; j += 2) {
      u32 b[4];
      hn_ldmatrix4(b, k + (j * 8 + (lane & 7) + (lane >> 4) * 8) * QP + d + (lane >> 3 & 1) * CHUNK);
      multiply(s[j], a, b);
      multiply(s[j + 1], a, b + 2);
    }
  }
}

/* acc += weights V. */
HN_FN void add_values(float s[KEYS / 8][4], const element *v, float acc[DEPTH_V / 8][4]) {
  u32 lane = threadIdx.x % 32;
#if WIDE
  HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) {
    /* The order of the keys within a step is free: element t is key 2t, element t + 4 key 2t + 1. */
    u32 a[4] = {hn_bits(s[j][0]), hn_bits(s[j][2]), hn_bits(s[j][1]), hn_bits(s[j][3])};
    const float *at = v + (j * 8 + lane % 4 * 2) * VP + lane / 4;
    HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) {
      u32 b[2] = {hn_bits(at[n * 8]), hn_bits(at[VP + n * 8])};
      multiply(acc[n], a, b);
    }
  }
#else
  HN_UNROLL for (u32 j = 0; j < KEYS / 8; j += 2) {
    u32 a[4] = {hn_to_x2(s[j][0], s[j][1]), hn_to_x2(s[j][2], s[j][3]), hn_to_x2(s[j + 1][0], s[j + 1][1]),
                hn_to_x2(s[j + 1][2], s[j + 1][3])};
    HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n += 2) {
      u32 b[4];
      hn_ldmatrix4_trans(b, v + (j * 8 + (lane & 15)) * VP + n * 8 + (lane >> 4) * 8);
      multiply(acc[n], a, b);
      multiply(acc[n + 1], a, b + 2);
    }
  }
#endif
}

/* Scores become weights; what was summed up before shrinks with it where a row's maximum grows. */
HN_FN void soften(float s[KEYS / 8][4], float top[2], float sum[2], float acc[DEPTH_V / 8][4]) {
  float high[2] = {NEVER, NEVER};
  HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) high[e / 2] = fmaxf(high[e / 2], s[j][e]);
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    float now_top = fmaxf(top[h], quad_max(high[h])), base = now_top == NEVER ? 0.0f : now_top;
    float shrink = hn_exp(top[h] - base), part = 0;
    top[h] = now_top;
    HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 2; e++) {
      s[j][h * 2 + e] = hn_exp(s[j][h * 2 + e] - base);
      part += s[j][h * 2 + e];
    }
    sum[h] = sum[h] * shrink + part;
    HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) HN_UNROLL for (u32 e = 0; e < 2; e++) acc[n][h * 2 + e] *= shrink;
  }
}

#endif
