/* TopK: a block a line. Short lines are sorted whole in shared memory. Of long ones the k-th key is found digit by digit
 * (radix select); what is above it, and as many of its equals as are wanted, is sorted, in shared memory or, for many,
 * in the workspace. Where there are few lines, blocks first choose k of each part of a line (hn_top_k_part), and of these
 * the best are chosen (hn_top_k_join). Prefix: HN_LARGEST, and those of order.cuh.
 * p: elements of a line, k, inner lines, entries to sort (a power of two), elements of a part, parts of a line */
#include "direct.cuh"
#include "order.cuh"

enum { HN_ENTRIES = 2048, HN_RADIX = 256 };

/* What is chosen from: a stretch of an input line, or keys with their indices, of equal ones the lower index first. */
typedef struct hn_source {
  i64 first; /* the line's first element */
  u32 base, n;
  const HN_KEY *key; /* NULL: the input */
  const u32 *index;
} hn_source;

HN_FN HN_KEY hn_key_at(const hn_direct_args *a, const hn_source *s, u32 at) {
  if (s->key) return s->key[at];
  const HN_PASTE(hn_value_, HN_I0) x = HN_IN(0, s->first + (i64)(s->base + at) * a->p[2]);
  const HN_KEY key = HN_ORDER_KEY(x);
  return HN_LARGEST ? key : ~key;
}
HN_FN u32 hn_index_at(const hn_source *s, u32 at) { return s->key ? s->index[at] : s->base + at; }

/* The k-th key, and how many are above it. */
HN_FN HN_KEY hn_select(const hn_direct_args *a, const hn_source *s, u32 k, u32 *above) {
  HN_SHARED u32 bin[HN_RADIX], sums[8];
  HN_SHARED u32 digit, taken;
  const u32 t = threadIdx.x;
  HN_KEY found = 0;
  u32 left = k;
  for (int shift = 8 * (int)sizeof(HN_KEY) - 8; shift >= 0; shift -= 8) {
    HN_SYNC();
    bin[t] = 0;
    HN_SYNC();
    for (u32 at = t; at < s->n; at += HN_RADIX) {
      const HN_KEY key = hn_key_at(a, s, at);
      if (shift + 8 == 8 * (int)sizeof(HN_KEY) || key >> (shift + 8) == found >> (shift + 8))
        hn_atomic_add_u32(&bin[key >> shift & (HN_RADIX - 1)], 1);
    }
    HN_SYNC();
    u32 all;
    const u32 mine = bin[HN_RADIX - 1 - t], upto = hn_block_scan(mine, sums, &all); /* this digit or a greater one */
    if (upto >= left && upto - mine < left) digit = HN_RADIX - 1 - t, taken = upto - mine;
    HN_SYNC();
    found |= (HN_KEY)digit << shift;
    left -= taken;
  }
  *above = k - left;
  return found;
}

/* The best k, in order, at the beginning of `padded` entries. */
HN_FN void hn_choose(const hn_direct_args *a, const hn_source *s, u32 k, u32 padded, HN_KEY *key, u32 *index) {
  HN_SHARED u32 rank[8];
  HN_SHARED u32 next;
  const u32 t = threadIdx.x;
  for (u32 e = t; e < padded; e += 256) key[e] = 0, index[e] = ~0u;
  if (s->n <= padded) {
    HN_SYNC();
    for (u32 e = t; e < s->n; e += 256) key[e] = hn_key_at(a, s, e), index[e] = hn_index_at(s, e);
  } else {
    u32 above, equals = 0, total;
    const HN_KEY least = hn_select(a, s, k, &above);
    if (t == 0) next = 0;
    for (u32 base = 0; base < s->n; base += 256) {
      const u32 e = base + t;
      const HN_KEY mine = e < s->n ? hn_key_at(a, s, e) : 0;
      const int same = e < s->n && mine == least;
      const u32 before = equals + hn_block_rank(same, rank, &total);
      equals += total;
      if (e < s->n && mine > least) {
        const u32 to = hn_atomic_add_u32(&next, 1);
        key[to] = mine, index[to] = hn_index_at(s, e);
      } else if (same && before < k - above) { /* of equals the first */
        key[above + before] = mine, index[above + before] = hn_index_at(s, e);
      }
    }
  }
  hn_block_sort(key, index, padded);
}

HN_FN void hn_give(const hn_direct_args *a, u32 line, const u32 *index) {
  const u32 n = (u32)a->p[0], k = (u32)a->p[1], inner = (u32)a->p[2], outer = line / inner, column = line - outer * inner;
  for (u32 e = threadIdx.x; e < k; e += 256) {
    const i64 to = ((i64)outer * k + e) * inner + column;
#ifdef HN_O0
    HN_OUT(0, to, HN_IN(0, ((i64)outer * n + index[e]) * inner + column));
#endif
#ifdef HN_O1
    HN_OUT(1, to, index[e]);
#endif
  }
}

HN_FN hn_source hn_line(const hn_direct_args *a, u32 line, u32 base, u32 n) {
  const u32 inner = (u32)a->p[2], outer = line / inner;
  hn_source s = {(i64)outer * a->p[0] * inner + (line - outer * inner), base, n, 0, 0};
  return s;
}

HN_EACH_BLOCK(hn_top_k) {
  HN_SHARED HN_KEY near_key[HN_ENTRIES];
  HN_SHARED u32 near_index[HN_ENTRIES];
  const u32 padded = (u32)a->p[3];
  const hn_source s = hn_line(a, i, 0, (u32)a->p[0]);
  HN_KEY *key = near_key;
  u32 *index = near_index;
  if (padded > HN_ENTRIES) {
    key = (HN_KEY *)a->work + (i64)i * padded;
    index = (u32 *)((HN_KEY *)a->work + (i64)gridDim.x * padded) + (i64)i * padded;
  }
  hn_choose(a, &s, (u32)a->p[1], padded, key, index);
  hn_give(a, i, index);
}

/* Candidates: keys of all parts, then their indices. */
HN_EACH_BLOCK(hn_top_k_part) {
  HN_SHARED HN_KEY key[HN_ENTRIES];
  HN_SHARED u32 index[HN_ENTRIES];
  const u32 parts = (u32)a->p[5], line = i / parts, base = (i - line * parts) * (u32)a->p[4], k = (u32)a->p[1];
  const u32 rest = (u32)a->p[0] - base, n = rest < (u32)a->p[4] ? rest : (u32)a->p[4];
  const hn_source s = hn_line(a, line, base, n);
  HN_KEY *to = (HN_KEY *)a->work + (i64)i * k;
  u32 *to_index = (u32 *)((HN_KEY *)a->work + (i64)gridDim.x * k) + (i64)i * k;
  hn_choose(a, &s, n < k ? n : k, (u32)a->p[3], key, index);
  for (u32 e = threadIdx.x; e < k; e += 256) to[e] = key[e], to_index[e] = index[e];
}

HN_EACH_BLOCK(hn_top_k_join) {
  HN_SHARED HN_KEY key[HN_ENTRIES];
  HN_SHARED u32 index[HN_ENTRIES];
  const i64 candidates = a->p[5] * a->p[1];
  hn_source s = {0, 0, (u32)candidates, (const HN_KEY *)a->work + i * candidates, 0};
  s.index = (const u32 *)((const HN_KEY *)a->work + (i64)gridDim.x * candidates) + i * candidates;
  hn_choose(a, &s, (u32)a->p[1], (u32)a->p[3], key, index);
  hn_give(a, i, index);
}
