/* TopK: a block a line. Short lines are sorted whole in shared memory. Of long ones the k-th key is found digit by digit
 * (radix select); what is above it, and as many of its equals as are wanted, is sorted, in shared memory or, for many,
 * in the workspace. Prefix: HN_LARGEST, and those of order.cuh.
 * p: elements of a line, k, inner lines, entries to sort (a power of two) */
#include "direct.cuh"
#include "order.cuh"

enum { HN_ENTRIES = 2048, HN_RADIX = 256 };

HN_FN HN_KEY hn_key_at(const hn_direct_args *a, i64 first, i64 at) {
  const HN_PASTE(hn_value_, HN_I0) x = HN_IN(0, first + at * a->p[2]);
  const HN_KEY key = HN_ORDER_KEY(x);
  return HN_LARGEST ? key : ~key;
}

/* The k-th key of the line, and how many are above it. */
HN_FN HN_KEY hn_select(const hn_direct_args *a, i64 first, u32 *above) {
  HN_SHARED u32 bin[HN_RADIX];
  HN_SHARED u32 digit, taken;
  const u32 t = threadIdx.x;
  HN_KEY found = 0;
  u32 left = (u32)a->p[1];
  for (int shift = 8 * (int)sizeof(HN_KEY) - 8; shift >= 0; shift -= 8) {
    HN_SYNC();
    bin[t] = 0;
    HN_SYNC();
    for (i64 at = t; at < a->p[0]; at += HN_RADIX) {
      const HN_KEY key = hn_key_at(a, first, at);
      if (shift + 8 == 8 * (int)sizeof(HN_KEY) || key >> (shift + 8) == found >> (shift + 8))
        hn_atomic_add_u32(&bin[key >> shift & (HN_RADIX - 1)], 1);
    }
    HN_SYNC();
    const u32 mine = bin[t];
    for (u32 step = 1; step < HN_RADIX; step *= 2) { /* bin[t]: how many have this digit or a greater one */
      HN_SYNC();
      const u32 more = t + step < HN_RADIX ? bin[t + step] : 0;
      HN_SYNC();
      bin[t] += more;
    }
    if (bin[t] >= left && bin[t] - mine < left) digit = t, taken = bin[t] - mine;
    HN_SYNC();
    found |= (HN_KEY)digit << shift;
    left -= taken;
  }
  *above = (u32)a->p[1] - left;
  return found;
}

HN_EACH_BLOCK(hn_top_k) {
  HN_SHARED HN_KEY near_key[HN_ENTRIES];
  HN_SHARED u32 near_index[HN_ENTRIES];
  HN_SHARED u32 rank[256];
  HN_SHARED u32 next;
  const u32 n = (u32)a->p[0], k = (u32)a->p[1], inner = (u32)a->p[2], padded = (u32)a->p[3], t = threadIdx.x;
  const u32 outer = i / inner, column = i - outer * inner;
  const i64 first = (i64)outer * n * inner + column;
  HN_KEY *key = near_key;
  u32 *index = near_index;
  if (padded > HN_ENTRIES) {
    key = (HN_KEY *)a->work + (i64)i * padded;
    index = (u32 *)((HN_KEY *)a->work + (i64)gridDim.x * padded) + (i64)i * padded;
  }
  for (u32 e = t; e < padded; e += 256) key[e] = 0, index[e] = ~0u;
  if (n <= padded) {
    HN_SYNC();
    for (u32 e = t; e < n; e += 256) key[e] = hn_key_at(a, first, e), index[e] = e;
  } else {
    u32 above, equals = 0, total;
    const HN_KEY least = hn_select(a, first, &above);
    if (t == 0) next = 0;
    for (u32 base = 0; base < n; base += 256) {
      const u32 e = base + t;
      const HN_KEY mine = e < n ? hn_key_at(a, first, e) : 0;
      const int same = e < n && mine == least;
      const u32 before = equals + hn_block_rank(same, rank, &total);
      equals += total;
      if (e < n && mine > least) {
        const u32 to = hn_atomic_add_u32(&next, 1);
        key[to] = mine, index[to] = e;
      } else if (same && before < k - above) { /* of equals the first */
        key[above + before] = mine, index[above + before] = e;
      }
    }
  }
  hn_block_sort(key, index, padded);
  for (u32 e = t; e < k; e += 256) {
    const i64 to = ((i64)outer * k + e) * inner + column;
#ifdef HN_O0
    HN_OUT(0, to, HN_IN(0, first + (i64)index[e] * inner));
#endif
#ifdef HN_O1
    HN_OUT(1, to, index[e]);
#endif
  }
}
