/* New keys and values go behind those of their cache, turned by their positions where the operator says so, and
 * queries are turned and laid side by side by the heads that share keys. cached_carry goes before it where the
 * caches that come are not those that are handed on. A thread has an element.
 *
 * Prefix: HN_T (f32, f16, bf16) of all but the tables, HN_TABLES of those. */
#include "cached.cuh"

HN_KERNEL(cached_carry, hn_cached_place_args, args) {
  const hn_cached_place_args *p = &args;
  const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x, one = (u64)p->z.room * p->z.size, all = one * p->z.batch * p->z.kv_heads;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (i >= 2 * all) return;
  const u32 which = i >= all;
  const u64 at = i - which * all, cache = at / one, inside = at - cache * one, had = (u64)p->z.had * p->z.size;
  hn_store(p->present[which], (i64)at, p->past[which] && inside < had ? hn_load(p->past[which], (i64)(cache * had + inside)) : 0.0f);
}

/* Where token t of input b stands; -1: the tables have no such place. */
HN_FN i64 place_of(const hn_cached_place_args *p, i64 old, u32 b, u32 t) {
  const i64 at = !p->n_positions ? old + t : p->n_positions == 1 ? p->positions[0] + t : p->positions[(u64)b * p->z.tokens + t];
  return at < 0 || at >= (i64)p->rows ? -1 : at;
}

/* Element e of a head, turned. */
HN_FN float turned(const hn_cached_place_args *p, const void *x, i64 from, u32 e, i64 at) {
  if (e >= 2 * p->half) return hn_load(x, from + e);
  const u32 pair = p->interleaved ? e / 2 : e % p->half, second = p->interleaved ? e % 2 : e >= p->half;
  const i64 a = from + (p->interleaved ? 2 * pair : pair), b = a + (p->interleaved ? 1 : p->half), k = at * p->half + pair;
  const float c = HN_JOIN(hn_load_, HN_TABLES)(p->cos, k), s = HN_JOIN(hn_load_, HN_TABLES)(p->sin, k);
  return second ? hn_load(x, b) * c + hn_load(x, a) * s : hn_load(x, a) * c - hn_load(x, b) * s;
}

HN_KERNEL(cached_place, hn_cached_place_args, args) {
  const hn_cached_place_args *p = &args;
  const hn_cached_sizes *z = &p->z;
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x, each = z->heads + 2 * z->kv_heads;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (i < p->n_arrived) p->arrived[i] = 0;
  const u32 row = i / z->size, e = i - row * z->size, token = row / each, h = row - token * each;
  const u32 b = token / z->tokens, t = token - b * z->tokens;
  if (b >= z->batch) return;
  const u32 what = h < z->heads ? 0 : h < z->heads + z->kv_heads ? 1 : 2;
  const u32 head = what == 0 ? h : h - z->heads - (what - 1) * z->kv_heads;
  i64 old = hn_cached_before(z, b), at = -1;
  if (old < 0 || p->half) at = old < 0 ? -1 : place_of(p, old, b, t);
  if (old < 0 || (p->half && at < 0)) {
    *(volatile u64 *)p->refused = p->node;
    return;
  }
  const i64 from = p->at[what] + (i64)token * p->row[what] + (i64)head * z->size;
  const float x = p->half && what < 2 ? turned(p, p->now[what], from, e, at) : hn_load(p->now[what], from + e);
  if (what == 0) {
    const u32 shared = head / z->group, own = head - shared * z->group;
    hn_store(p->q, ((((i64)b * z->kv_heads + shared) * z->tokens + t) * z->group + own) * z->size + e, x);
  } else {
    hn_store(p->present[what - 1], (((i64)b * z->kv_heads + head) * z->room + old + t) * z->size + e, x);
  }
}
