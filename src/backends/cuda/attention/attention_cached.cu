/* Attention of new tokens to what a cache holds of their input, whose length the device finds out. Rows of a tile are
 * the heads that share keys, token by token: each key and value is read once for all of them. A block has a tile and
 * a part of the keys; where there are several (splits), the last one that arrives puts their results together, in
 * their order. Prefix: as attention_tile.cuh; RING (1, 2), BLOCKS (that a multiprocessor is to hold), HN_SINK (type of the
 * sinks). */
#include "attention_tile.cuh"
#include "cached.cuh"

/* The tile's place, and its part of the keys. */
typedef struct span {
  u32 b, shared, row0, rows; /* input, head of keys, first row and number of them */
  i64 old, from, until;
} span;

HN_FN span span_of(const hn_cached_attention_args *p, u32 tile, u32 split) {
  const hn_cached_sizes *z = &p->z;
  const u32 cache = tile / p->row_tiles;
  span s = {cache / z->kv_heads, cache % z->kv_heads, tile % p->row_tiles * ROWS, z->tokens * z->group, 0, 0, 0};
  const i64 old = hn_cached_before(z, s.b), last = min(s.row0 + (u32)ROWS, s.rows) - 1;
  s.old = old < 0 ? 0 : old; /* that was refused */
  const i64 end = p->causal ? s.old + last / z->group + 1 : s.old + z->tokens;
  const i64 first = s.old + s.row0 / z->group + 1 - (i64)p->window, begin = p->window && first > 0 ? first : 0;
  const i64 unit = KEYS * PARTS, units = (end - begin + unit - 1) / unit, each = (units + p->splits - 1) / p->splits;
  s.from = begin + split * each * unit;
  s.until = s.from + each * unit < end ? s.from + each * unit : end;
  return s;
}

HN_FN void hide(const hn_cached_attention_args *p, const span *s, u32 row, i64 first, u32 h, float x[KEYS / 8][4]) {
  const i64 stands = s->old + min(row, s->rows - 1) / p->z.group, low = p->window ? stands + 1 - (i64)p->window : 0,
            high = p->causal && stands + 1 < s->until ? stands + 1 : s->until;
  HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 2; e++) {
    const i64 key = first + j * 8 + threadIdx.x % 4 * 2 + e;
    if (key < low || key >= high) x[j][2 * h + e] = NEVER;
  }
}

/* One row's column: what is summed up, the sum of the weights and the maximum they were taken from. */
typedef struct weighed {
  float x, whole, top;
} weighed;

HN_FN weighed join(weighed a, float x, float whole, float top) {
  const float high = fmaxf(a.top, top), base = high == NEVER ? 0.0f : high, of_a = hn_exp(a.top - base), of_b = hn_exp(top - base);
  const weighed both = {a.x * of_a + x * of_b, a.whole * of_a + whole * of_b, high};
  return both;
}

HN_FN void put(const hn_cached_attention_args *p, const span *s, u32 row, u32 column, weighed w) {
  const u32 t = (s->row0 + row) / p->z.group, head = s->shared * p->z.group + (s->row0 + row) % p->z.group;
  if (p->sinks) w = join(w, 0.0f, 1.0f, p->sink ? HN_JOIN(hn_load_, HN_SINK)(p->sink, head) : 0.0f);
  hn_store(p->y, (((i64)s->b * p->z.tokens + t) * p->z.heads + head) * p->z.size + column, w.x / w.whole);
}

/* What the block's parts have of a row and a column. */
HN_FN weighed meet(const float *parts, const float *tops, const float *sums, u32 row, u32 column) {
  weighed w = {0, 0, NEVER};
  HN_UNROLL for (u32 k = 0; k < PARTS; k++)
      w = join(w, parts[(k * ROWS + row) * AP + column], sums[k * ROWS + row], tops[k * ROWS + row]);
  return w;
}

HN_KERNEL_BOUNDS(attention_cached, hn_cached_attention_args, args, THREADS, BLOCKS) {
  HN_DYNAMIC_SHARED(element, shared);
  HN_SHARED u32 others;
  const hn_cached_attention_args *p = &args;
  const u32 part = threadIdx.x / GROUP, thread = threadIdx.x % GROUP, warp = thread / 32, lane = threadIdx.x % 32;
  const u32 tile = blockIdx.x / p->splits, split = blockIdx.x - tile * p->splits;
  HN_GRID_GO();
  HN_GRID_WAIT();
  const span s = span_of(p, tile, split);
  const i64 cache = ((i64)s.b * p->z.kv_heads + s.shared) * p->z.room * p->z.size;
  const element *q = (const element *)p->q + ((i64)s.b * p->z.kv_heads + s.shared) * s.rows * p->z.size,
                *k = (const element *)p->k + cache, *v = (const element *)p->v + cache;
  element *keys = shared + ROWS * QP + part * RING * KEYS * (QP + VP), *values = keys + RING * KEYS * QP;
  float acc[DEPTH_V / 8][4], top[2] = {NEVER, NEVER}, sum[2] = {0, 0};
  HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) HN_UNROLL for (u32 e = 0; e < 4; e++) acc[n][e] = 0;
  const u32 blocks = s.until > s.from ? (u32)((s.until - s.from + KEYS * PARTS - 1) / (KEYS * PARTS)) : 0;
  if (blocks) load_rows(threadIdx.x, THREADS, shared, QP, q, p->z.size, 1, s.row0, s.rows, ROWS, p->z.size, DEPTH);
  for (u32 t = 0; blocks && t < blocks + RING - 1; t++) {
    if (t < blocks) {
      const u32 from = (u32)s.from + (t * PARTS + part) * KEYS;
      load_rows(thread, GROUP, keys + t % RING * KEYS * QP, QP, k, p->z.size, 1, from, (u32)s.until, KEYS, p->z.size, DEPTH);
      load_rows(thread, GROUP, values + t % RING * KEYS * VP, VP, v, p->z.size, 1, from, (u32)s.until, KEYS, p->z.size, DEPTH_V);
    }
    hn_cp_async_commit();
    if (t + 1 < RING) continue;
    const u32 now = t + 1 - RING;
    const i64 first = s.from + (now * PARTS + part) * KEYS;
    HN_CP_ASYNC_WAIT(RING - 1);
    HN_SYNC();
    float x[KEYS / 8][4];
    make_scores(shared + warp * 16 * QP, keys + now % RING * KEYS * QP, x);
    HN_UNROLL for (u32 j = 0; j < KEYS / 8; j++) HN_UNROLL for (u32 e = 0; e < 4; e++) {
      x[j][e] *= p->scale;
      if (p->cap != 0) x[j][e] = p->cap * hn_tanh(x[j][e]);
    }
    HN_UNROLL for (u32 h = 0; h < 2; h++) hide(p, &s, s.row0 + warp * 16 + lane / 4 + h * 8, first, h, x);
    soften(x, top, sum, acc);
    add_values(x, values + now % RING * KEYS * VP, acc);
    HN_SYNC();
  }
  /* Keys and values were where the parts' results meet. */
  float *parts = (float *)(void *)shared, *tops = parts + PARTS * ROWS * AP, *sums = tops + PARTS * ROWS;
  const u32 row = warp * 16 + lane / 4;
  HN_UNROLL for (u32 h = 0; h < 2; h++) {
    const float whole = quad_sum(sum[h]);
    if (lane % 4 == 0) tops[part * ROWS + row + 8 * h] = top[h], sums[part * ROWS + row + 8 * h] = whole;
    HN_UNROLL for (u32 n = 0; n < DEPTH_V / 8; n++) HN_UNROLL for (u32 e = 0; e < 2; e++)
        parts[(part * ROWS + row + 8 * h) * AP + n * 8 + lane % 4 * 2 + e] = acc[n][h * 2 + e];
  }
  HN_SYNC();
  const u32 here = min((u32)ROWS, s.rows - s.row0), columns = p->z.size;
  float *mine = p->parts + ((i64)tile * p->splits + split) * ROWS * (DEPTH_V + 2);
  for (u32 i = threadIdx.x; i < here * columns; i += THREADS) {
    const u32 r = i / columns, c = i - r * columns;
    const weighed w = meet(parts, tops, sums, r, c);
    if (p->splits == 1) {
      put(p, &s, r, c, w);
      continue;
    }
    mine[r * (DEPTH_V + 2) + c] = w.x;
    if (c == 0) mine[r * (DEPTH_V + 2) + DEPTH_V] = w.top, mine[r * (DEPTH_V + 2) + DEPTH_V + 1] = w.whole;
  }
  if (p->splits == 1) return;
  hn_fence();
  HN_SYNC();
  if (threadIdx.x == 0) others = hn_atomic_add_u32(p->arrived + tile, 1);
  HN_SYNC();
  if (others + 1 != p->splits) return;
  hn_fence();
  const volatile float *all = p->parts + (i64)tile * p->splits * ROWS * (DEPTH_V + 2);
  for (u32 i = threadIdx.x; i < here * columns; i += THREADS) {
    const u32 r = i / columns, c = i - r * columns;
    weighed w = {0, 0, NEVER};
    for (u32 n = 0; n < p->splits; n++) {
      const volatile float *one = all + (n * ROWS + r) * (DEPTH_V + 2);
      w = join(w, one[c], one[DEPTH_V + 1], one[DEPTH_V]);
    }
    put(p, &s, r, c, w);
  }
}
