/* softmax(scale Q K^T, masks) V on tensor cores, in one pass over the keys (online softmax).
 *
 * A warp has 16 rows of Q, a block WARPS of them, each PARTS times: PARTS groups of WARPS warps take every
 * PARTS-th block of keys, and what they got meets in shared memory. Blocks of KEYS keys and their values come by
 * cp.async, RING of them a group in shared memory. A row's result is kept unnormalised with its maximum and sum so far, and rescaled when
 * the maximum grows. Scores become weights in registers: the layout of mma's sums is that of its first operand.
 * Rows in shared memory have one chunk (16 bytes) more than elements, an odd number: no bank conflicts.
 *
 * Prefix: HN_T f16 | bf16 | f32; DEPTH, DEPTH_V (columns of Q and V, rounded up to 16), WARPS, PARTS, KEYS, RING (1, 2), BLOCKS
 * (that a multiprocessor is to hold);
 * HN_Y (f16, bf16, f32, or codes of 8 bits: HN_CODES_OUT) of the result;
 * HN_CODES_IN: operands are codes of 8 bits (HN_T is f16, RING 1). A code less its zero point is a whole number that f16 holds, so that
 * operands in shared memory are these, scores are exact, and scales are factors of the scores and of the result;
 * HN_NAN_TO_ZERO: weights of a row that are no numbers are 0 instead;
 * HN_SPLIT3: f32 as three products of tf32 parts, else f32 is rounded to tf32; HN_VECTORS: bytes (4, 8, 16) of which all
 * operands' rows are multiples; HN_PAIRS: two columns of the result are stored together; HN_MASKS; HN_READ_MASKS(ahead, key): reads what masks have for a key
 * and all rows; HN_MASKED(x, row, key, ahead): applies the masks to a score. */
#include "attention_tile.cuh"
#include "divide.cuh"

#include "attention_args.h"
#include "quantise.cuh"

#ifdef HN_CODES_IN
#define VALUES_SCALE p->values_scale
#else
#define VALUES_SCALE 1.0f
#endif

#ifdef HN_CODES_IN
#ifdef HN_VECTORS
enum { EACH = HN_VECTORS };
#else
enum { EACH = 4 };
#endif
enum { WORDS = EACH / 4, HELD = 4 /* chunks of a thread that are on their way together */ };

/* Rows of codes: those from `row` on, of `rows` with `columns` each; `zero`: the zero point in each byte of a word. */
typedef struct operand {
  const u8 *from;
  i64 row_step, col_step;
  u32 row, rows, columns, zero;
} operand;

/* Of the first `n` rows chunks first, first + step...; the zero point where there is none. */
HN_FN void fetch(const operand *o, u32 first, u32 step, u32 n, u32 width, u32 flip, u32 held[HELD][WORDS]) {
  const u32 chunks = width / EACH;
  HN_UNROLL for (u32 j = 0; j < HELD; j++) {
    const u32 i = first + j * step, r = i / chunks, c = i % chunks * EACH;
    const u8 *from = o->from + (i64)(o->row + r) * o->row_step + c * o->col_step;
    const bool in = r < n && o->row + r < o->rows;
    HN_UNROLL for (u32 k = 0; k < WORDS; k++) held[j][k] = o->zero;
#if !defined(HN_VECTORS)
    u32 w = 0;
    HN_UNROLL for (u32 k = 0; k < 4; k++)
        w |= (in && c + k < o->columns ? from[k * o->col_step] ^ (flip & 0xff) : o->zero & 0xff) << 8 * k;
    held[j][0] = w;
#else
    if (in && c < o->columns) {
#if HN_VECTORS == 16
      const hn_u4 v = hn_ld16(from);
      HN_UNROLL for (u32 k = 0; k < 4; k++) held[j][k] = v.v[k] ^ flip;
#else
      HN_UNROLL for (u32 k = 0; k < WORDS; k++) held[j][k] = ((const u32 *)(const void *)from)[k] ^ flip;
#endif
    }
#endif
  }
}

/* What fetch brought as numbers of f16 into shared memory: 1024 and a code are the code's bits below 0x6400. */
HN_FN void place(const operand *o, u32 first, u32 step, u32 n, u32 width, const u32 held[HELD][WORDS], element *to, u32 pitch) {
  const u32 chunks = width / EACH, zero = hn_bytes(o->zero, 0x64006400u, 0x5150);
  HN_UNROLL for (u32 j = 0; j < HELD; j++) {
    const u32 i = first + j * step, r = i / chunks, c = i % chunks * EACH;
    if (r >= n) break;
    u32 x[WORDS * 2];
    HN_UNROLL for (u32 k = 0; k < WORDS; k++) {
      x[2 * k] = hn_sub_f16x2(hn_bytes(held[j][k], 0x64006400u, 0x5150), zero);
      x[2 * k + 1] = hn_sub_f16x2(hn_bytes(held[j][k], 0x64006400u, 0x5352), zero);
    }
#if defined(HN_VECTORS) && HN_VECTORS >= 8
    HN_UNROLL for (u32 k = 0; k < WORDS; k += 2) {
      const hn_u4 v = {{x[2 * k], x[2 * k + 1], x[2 * k + 2], x[2 * k + 3]}};
      *(hn_u4 *)(void *)(to + r * pitch + c + 4 * k) = v;
    }
#else
    *(u64 *)(void *)(to + r * pitch + c) = x[0] | (u64)x[1] << 32;
#endif
  }
}

/* Queries, all of them at once. */
HN_FN void load_queries(const operand *o, u32 flip, element *to) {
  u32 held[HELD][WORDS];
  for (u32 i = threadIdx.x; i < ROWS * (DEPTH / EACH); i += THREADS * HELD) {
    fetch(o, i, THREADS, ROWS, DEPTH, flip, held);
    place(o, i, THREADS, ROWS, DEPTH, held, to, QP);
  }
}
#endif

HN_FN void put(const hn_attention_args *p, i64 at, float x) {
#ifdef HN_CODES_OUT
  ((u8 *)p->y)[at] = (u8)hn_quantise(x, &p->codes);
#else
  HN_JOIN(hn_store_, HN_Y)(p->y, at, x);
#endif
}

/* Two neighbouring columns, the first an even one. */
HN_FN void put2(const hn_attention_args *p, i64 at, u32 column, float x, float y) {
#if defined(HN_PAIRS) && defined(HN_CODES_OUT)
  *(u16 *)((u8 *)p->y + at) = (u16)((u8)hn_quantise(x, &p->codes) | (u32)(u8)hn_quantise(y, &p->codes) << 8);
#elif defined(HN_PAIRS) && HN_JOIN(HN_IS_, HN_Y)
  *(u64 *)((float *)p->y + at) = (u64)hn_bits(y) << 32 | hn_bits(x);
#elif defined(HN_PAIRS)
  *(u32 *)((u16 *)p->y + at) = HN_JOIN(HN_JOIN(hn_to_, HN_Y), x2)(x, y);
#else
  put(p, at, x);
  if (column + 1 < p->depth_v) put(p, at + 1, y);
#endif
  (void)column;
}

/* What becomes of a sum x of weighed values, x's share of the weights' sum `whole`. */
HN_FN float result_of(float x, float share, float whole) {
#ifdef HN_NAN_TO_ZERO
  if (whole == 0) return x; /* no key is seen: x is zero times each value */
  if (!(whole > 0)) return 0.0f;
#endif
  (void)x, (void)whole;
  return share;
}

#if PARTS > 1
/* The parts' results, each with the maximum and the sum of its rows, become one. */
HN_FN void meet(const hn_attention_args *p, float *parts, u32 row0, i64 y_at, float acc[DEPTH_V / 8][4], const float top[2],
                const float sum[2]) {
  u32 part = threadIdx.x / GROUP, lane = threadIdx.x % 32, row = threadIdx.x % GROUP / 32 * 16 + lane / 4;
  float *tops = parts + PARTS * ROWS * AP, *sums = tops + PARTS * ROWS, *mine = parts + part * ROWS * AP;
  HN_SYNC(); /* keys and values were here */
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    float whole = quad_sum(sum[h]);
    if (lane % 4 == 0) tops[part * ROWS + row + 8 * h] = top[h], sums[part * ROWS + row + 8 * h] = whole;
    HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) HN_UNROLL for (u32 e = 0; e < 2; e++)
        mine[(row + 8 * h) * AP + n * 8 + lane % 4 * 2 + e] = acc[n][h * 2 + e];
  }
  HN_SYNC();
  for (u32 i = threadIdx.x; i < ROWS * DEPTH_V; i += THREADS) {
    u32 r = i / DEPTH_V, c = i % DEPTH_V;
    float highest = NEVER, whole = 0, x = 0;
    HN_UNROLL for (u32 k = 0; k < PARTS; k++) highest = fmaxf(highest, tops[k * ROWS + r]);
    float base = highest == NEVER ? 0.0f : highest;
    HN_UNROLL for (u32 k = 0; k < PARTS; k++) {
      float share = hn_exp(tops[k * ROWS + r] - base);
      whole += share * sums[k * ROWS + r];
      x += share * parts[(k * ROWS + r) * AP + c];
    }
    if (row0 + r < p->rows && c < p->depth_v) put(p, y_at + (i64)(row0 + r) * p->y_row + c, result_of(x, x / whole * VALUES_SCALE, whole));
  }
}
#endif

HN_KERNEL_BOUNDS(attention_mma, hn_attention_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(element, shared);
  const hn_attention_args *p = &args;
  u32 part = threadIdx.x / GROUP, thread = threadIdx.x % GROUP, warp = thread / 32, lane = threadIdx.x % 32;
  u32 batch = hn_quotient(blockIdx.x, &p->row_tiles);
  u32 row0 = (blockIdx.x - batch * p->row_tiles.by) * ROWS;
  i64 q_at = 0, k_at = 0, v_at = 0, y_at = 0, m_at[HN_ATTENTION_MASK] = {0, 0, 0};
  for (u32 d = p->n_batch, left = batch; d-- > 0;) {
    const u32 above = hn_quotient(left, &p->batch[d]), i = left - above * p->batch[d].by;
    q_at += i * p->q_batch[d], k_at += i * p->k_batch[d], v_at += i * p->v_batch[d], y_at += i * p->y_batch[d];
    HN_UNROLL for (u32 m = 0; m < HN_MASKS; m++) m_at[m] += i * p->mask_batch[m][d];
    left = above;
  }
  (void)m_at;
  element *keys = shared + ROWS * QP + part * RING * KEYS * (QP + VP), *values = keys + RING * KEYS * QP;
  const element *q = shared + warp * 16 * QP;
  float acc[DEPTH_V / 8][4], top[2] = {NEVER, NEVER}, sum[2] = {0, 0};
  HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) HN_UNROLL for (u32 e = 0; e < 4; e++) acc[n][e] = 0;
  u32 blocks = (p->keys + KEYS * PARTS - 1) / (KEYS * PARTS); /* of each part; beyond the end they are empty */
#if HN_MASKS
  u32 rows[2];
  HN_UNROLL for (u32 h = 0; h < 2; h++) rows[h] = min(row0 + warp * 16 + lane / 4 + h * 8, p->rows - 1), (void)rows[h];
#endif
  HN_GRID_GO();
  HN_GRID_WAIT();
#ifdef HN_CODES_IN
  const operand queries = {(const u8 *)p->q + q_at, p->q_row, 1, row0, p->rows, p->depth, p->zero[0]};
  operand key = {(const u8 *)p->k + k_at, p->k_row, p->k_col, 0, p->keys, p->depth, p->zero[1]};
  operand value = {(const u8 *)p->v + v_at, p->v_row, 1, 0, p->keys, p->depth_v, p->zero[2]};
#else
  load_rows(threadIdx.x, THREADS, shared, QP, (const element *)p->q + q_at, p->q_row, 1, row0, p->rows, ROWS, p->depth, DEPTH);
#endif
  for (u32 t = 0; t < blocks + RING - 1; t++) {
#ifdef HN_CODES_IN
    key.row = value.row = (t * PARTS + part) * KEYS;
    for (u32 i = thread; i < KEYS * ((DEPTH > DEPTH_V ? DEPTH : DEPTH_V) / EACH); i += GROUP * HELD) {
      u32 held[2][HELD][WORDS];
      fetch(&key, i, GROUP, KEYS, DEPTH, p->flip, held[0]);
      fetch(&value, i, GROUP, KEYS, DEPTH_V, p->flip, held[1]);
      if (t == 0 && i == thread) load_queries(&queries, p->flip, shared);
      place(&key, i, GROUP, KEYS, DEPTH, held[0], keys, QP);
      place(&value, i, GROUP, KEYS, DEPTH_V, held[1], values, VP);
    }
#else
    if (t < blocks) {
      u32 from = (t * PARTS + part) * KEYS;
      load_rows(thread, GROUP, keys + t % RING * KEYS * QP, QP, (const element *)p->k + k_at, p->k_row, p->k_col, from,
                p->keys, KEYS, p->depth, DEPTH);
      load_rows(thread, GROUP, values + t % RING * KEYS * VP, VP, (const element *)p->v + v_at, p->v_row, 1, from, p->keys,
                KEYS, p->depth_v, DEPTH_V);
    }
    hn_cp_async_commit();
#endif
    if (t + 1 < RING) continue;
    const u32 now = t + 1 - RING, first = (now * PARTS + part) * KEYS;
#if HN_MASKS
    float ahead[KEYS / 8][2][HN_MASKS]; /* on their way while keys and values are */
    HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 2; e++) {
      const u32 key = min(first + j * 8 + lane % 4 * 2 + e, p->keys - 1);
      HN_READ_MASKS(ahead[j][e], key)
      (void)key;
    }
#endif
#ifndef HN_CODES_IN
    HN_CP_ASYNC_WAIT(RING - 1);
#endif
    HN_SYNC();
    float s[KEYS / 8][4];
    make_scores(q, keys + now % RING * KEYS * QP, s);
    HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) {
      float x = s[j][e] * p->scale;
#if HN_MASKS
      const u32 key = min(first + j * 8 + lane % 4 * 2 + e % 2, p->keys - 1);
      x = HN_MASKED(x, rows[e / 2], key, ahead[j][e % 2]);
      (void)key;
#endif
      s[j][e] = x;
    }
    if (first + KEYS > p->keys) {
      HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) {
        if (first + j * 8 + lane % 4 * 2 + e % 2 >= p->keys) s[j][e] = NEVER;
      }
    }
    soften(s, top, sum, acc);
    add_values(s, values + now % RING * KEYS * VP, acc);
    HN_SYNC();
  }
#if PARTS > 1
  meet(p, (float *)(void *)shared, row0, y_at, acc, top, sum);
#else
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    u32 row = row0 + warp * 16 + lane / 4 + h * 8;
    const float whole = quad_sum(sum[h]), one = 1.0f / whole * VALUES_SCALE;
    const i64 y = y_at + (i64)row * p->y_row;
    if (row < p->rows) {
      HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) {
        u32 c = n * 8 + lane % 4 * 2;
        const float a = acc[n][h * 2], b = acc[n][h * 2 + 1];
        if (c < p->depth_v) put2(p, y + c, c, result_of(a, a * one, whole), result_of(b, b * one, whole));
      }
    }
  }
#endif
}
