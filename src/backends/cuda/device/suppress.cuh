/* Non-maximum suppression of one class by a block of HN_SUPPRESS_THREADS threads: the best box is kept, those that overlap
 * it too much are not, then the best of the rest, and so on.
 *
 * Candidates are taken in order, as many at a time as are sorted in shared memory: all of them, or those up to a key that
 * counts of the leading bits tell. 64 sorted ones at a time are compared with what is kept so far and with each other, by
 * all warps; which of the 64 remain, each warp then finds from bits.
 *
 * Defined before: HN_RIVALS, what the two below read; HN_RIVAL_KEY(r, e), u32 of box e, the better the smaller, ~0 for no
 * candidate (of equal ones the first box is better); HN_RIVAL_CORNERS(r, e), its hn_corners (corners.cuh). */
#ifndef HN_SUPPRESS_CUH
#define HN_SUPPRESS_CUH

#include "corners.cuh"
#include "suppress_args.h"

enum {
  HN_SUPPRESS_WARPS = HN_SUPPRESS_THREADS / 32,
  HN_SUPPRESS_NEAR = 2 * HN_SUPPRESS_THREADS, /* candidates that are sorted at once, and kept corners in shared memory */
  HN_SUPPRESS_BINS = 4 * HN_SUPPRESS_THREADS,
  HN_SUPPRESS_BIN_BITS = 11,
  HN_SUPPRESS_READS = 12, /* on their way at once */
  HN_SUPPRESS_TILE = 64   /* two a thread of a warp */
};

typedef struct hn_suppress_room { /* of a block */
  u64 key[HN_SUPPRESS_NEAR];      /* of a box: HN_RIVAL_KEY, then the box */
  hn_corners near[HN_SUPPRESS_NEAR], kept[HN_SUPPRESS_NEAR];
  u32 over[2][HN_SUPPRESS_TILE][2], hit[2][2][HN_SUPPRESS_WARPS], found, bin, fits;
} hn_suppress_room;

HN_FN u64 hn_rival(u32 key, u32 e) { return (u64)key << 32 | e; }

/* Keys of boxes first, first + HN_SUPPRESS_THREADS, ...; ~0 behind the last one. */
HN_FN void hn_rival_keys(const HN_RIVALS *r, u32 first, u32 n, u32 *key) {
  HN_UNROLL
  for (u32 k = 0; k < HN_SUPPRESS_READS; k++) {
    const u32 e = first + k * HN_SUPPRESS_THREADS;
    key[k] = e < n ? HN_RIVAL_KEY(r, e) : ~0u;
  }
}

/* How many keys there are in from..to; in room->key, in any order, those that it has room for. */
HN_FN u32 hn_collect(const HN_RIVALS *r, u32 n, u64 from, u64 to, hn_suppress_room *room) {
  const u32 lane = threadIdx.x % 32;
  HN_SYNC(); /* what was there has been read */
  if (threadIdx.x == 0) room->found = 0;
  HN_SYNC();
  for (u32 base = 0; base < n; base += HN_SUPPRESS_READS * HN_SUPPRESS_THREADS) {
    u32 key[HN_SUPPRESS_READS];
    hn_rival_keys(r, base + threadIdx.x, n, key);
    HN_UNROLL
    for (u32 k = 0; k < HN_SUPPRESS_READS; k++) {
      const u64 rival = hn_rival(key[k], base + threadIdx.x + k * HN_SUPPRESS_THREADS);
      const int is_in = key[k] != ~0u && rival >= from && rival <= to;
      const u32 others = hn_ballot(is_in);
      u32 place = 0;
      if (!others) continue;
      if (lane == 0) place = hn_atomic_add_u32(&room->found, (u32)__popc(others));
      place = hn_shfl_u32(place, 0) + (u32)__popc(others & ((1u << lane) - 1));
      if (is_in && place < HN_SUPPRESS_NEAR) room->key[place] = rival;
    }
  }
  HN_SYNC();
  return room->found;
}

/* The least and the greatest key from `from` on. */
HN_FN void hn_rival_range(const HN_RIVALS *r, u32 n, u64 from, hn_suppress_room *room, u64 *least, u64 *greatest) {
  u64 *low = room->key, *high = room->key + HN_SUPPRESS_THREADS;
  u64 lowest = ~(u64)0, highest = 0;
  for (u32 base = 0; base < n; base += HN_SUPPRESS_READS * HN_SUPPRESS_THREADS) {
    u32 key[HN_SUPPRESS_READS];
    hn_rival_keys(r, base + threadIdx.x, n, key);
    HN_UNROLL
    for (u32 k = 0; k < HN_SUPPRESS_READS; k++) {
      const u64 rival = hn_rival(key[k], base + threadIdx.x + k * HN_SUPPRESS_THREADS);
      if (key[k] == ~0u || rival < from) continue;
      if (rival < lowest) lowest = rival;
      if (rival > highest) highest = rival;
    }
  }
  HN_SYNC(); /* what was there has been read */
  low[threadIdx.x] = lowest, high[threadIdx.x] = highest;
  for (u32 half = HN_SUPPRESS_THREADS / 2; half; half /= 2) {
    HN_SYNC();
    if (threadIdx.x >= half) continue;
    if (low[threadIdx.x + half] < low[threadIdx.x]) low[threadIdx.x] = low[threadIdx.x + half];
    if (high[threadIdx.x + half] > high[threadIdx.x]) high[threadIdx.x] = high[threadIdx.x + half];
  }
  HN_SYNC();
  *least = low[0], *greatest = high[0];
}

/* Of more keys from `from` on than there is room for: up to which one there is room, for one of them at least. Counts by
 * leading bits, and by those behind them where all that begins alike is too much. */
HN_FN u64 hn_rivals_that_fit(const HN_RIVALS *r, u32 n, u64 from, hn_suppress_room *room) {
  u32 *bin = (u32 *)room->near, *upto = (u32 *)room->key;
  u64 least, greatest;
  hn_rival_range(r, n, from, room, &least, &greatest);
  for (;;) {
    const u32 high = (u32)((least ^ greatest) >> 32), low = (u32)(least ^ greatest);
    const int bits = high ? 64 - __clz((int)high) : 32 - __clz((int)low);
    const int shift = bits > HN_SUPPRESS_BIN_BITS ? bits - HN_SUPPRESS_BIN_BITS : 0;
    HN_SYNC();
    for (u32 b = threadIdx.x; b < HN_SUPPRESS_BINS; b += HN_SUPPRESS_THREADS) bin[b] = 0;
    HN_SYNC();
    for (u32 base = 0; base < n; base += HN_SUPPRESS_READS * HN_SUPPRESS_THREADS) {
      u32 key[HN_SUPPRESS_READS];
      hn_rival_keys(r, base + threadIdx.x, n, key);
      HN_UNROLL
      for (u32 k = 0; k < HN_SUPPRESS_READS; k++) {
        const u64 rival = hn_rival(key[k], base + threadIdx.x + k * HN_SUPPRESS_THREADS);
        if (key[k] != ~0u && rival >= least && rival <= greatest)
          hn_atomic_add_u32(bin + ((u32)(rival >> shift) & (HN_SUPPRESS_BINS - 1)), 1);
      }
    }
    HN_SYNC();
    const u32 *four = bin + 4 * threadIdx.x;
    const u32 own = four[0] + four[1] + four[2] + four[3];
    upto[threadIdx.x] = own;
    for (u32 step = 1; step < HN_SUPPRESS_THREADS; step *= 2) {
      HN_SYNC();
      const u32 before = threadIdx.x >= step ? upto[threadIdx.x - step] : 0;
      HN_SYNC();
      upto[threadIdx.x] += before;
    }
    /* One bin is the first with which it is too much. */
    u32 sum = upto[threadIdx.x] - own;
    for (u32 i = 0; i < 4; sum += four[i++])
      if (sum <= HN_SUPPRESS_NEAR && sum + four[i] > HN_SUPPRESS_NEAR) room->bin = 4 * threadIdx.x + i, room->fits = sum;
    HN_SYNC();
    const u64 begin = ((least >> shift & ~(u64)(HN_SUPPRESS_BINS - 1)) | room->bin) << shift;
    if (room->fits) return begin - 1;
    const u64 end = begin + (((u64)1 << shift) - 1);
    if (end < greatest) greatest = end;
  }
}

/* n keys in order, the least first: a thread a pair. Up to 64 keys that follow each other are those of a warp. */
HN_FN void hn_sort_rivals(u64 *key, u32 n) {
  const u32 t = threadIdx.x;
  u32 padded = 1, before = 64;
  while (padded < n) padded *= 2;
  for (u32 e = n + t; e < padded; e += HN_SUPPRESS_THREADS) key[e] = ~(u64)0;
  for (u32 size = 2; size <= padded; size *= 2)
    for (u32 step = size / 2; step; before = step, step /= 2) {
      if (step > 32 || before > 32) {
        HN_SYNC();
      } else {
        HN_SYNC_WARP();
      }
      if (t >= padded / 2) continue;
      const u32 low = 2 * t - (t & (step - 1)), high = low + step;
      const u64 a = key[low], b = key[high];
      if ((a > b) == ((low & size) == 0)) key[low] = b, key[high] = a;
    }
  HN_SYNC();
}

/* A bit a box of half a tile: all that are there. */
HN_FN u32 hn_first_bits(u32 n) { return n < 32 ? (1u << n) - 1 : ~0u; }

HN_FN void hn_keep(u32 place, u32 at, u32 *kept, hn_suppress_room *room) {
  kept[place] = (u32)room->key[at];
  if (place < HN_SUPPRESS_NEAR) room->kept[place] = room->near[at];
}

/* Which of the n boxes of room->key, which are in order, are kept beside those that are; returns how many are now. */
HN_FN u32 hn_thin_out(const HN_RIVALS *r, u32 n, u32 chosen, u32 most, float iou, u32 *kept, hn_suppress_room *room) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = (1u << lane) - 1;
  for (u32 base = 0, turn = 0; base < n && chosen < most; base += HN_SUPPRESS_TILE, turn ^= 1) {
    const u32 left = n - base, here = left < HN_SUPPRESS_TILE ? left : HN_SUPPRESS_TILE;
    const u32 far = here > 32 ? here - 32 : 0;
    const hn_corners a = room->near[base + (lane < here ? lane : 0)], b = room->near[base + (lane < far ? lane + 32 : 0)];
    int hit_a = 0, hit_b = 0;
    for (u32 k = warp; k < chosen; k += HN_SUPPRESS_WARPS) {
      const hn_corners other = k < HN_SUPPRESS_NEAR ? room->kept[k] : HN_RIVAL_CORNERS(r, kept[k]);
      hit_a |= hn_overlaps(a, other, iou);
      hit_b |= hn_overlaps(b, other, iou);
    }
    const u32 hits_a = hn_ballot(hit_a), hits_b = hn_ballot(hit_b);
    if (lane == 0) room->hit[turn][0][warp] = hits_a, room->hit[turn][1][warp] = hits_b;
    for (u32 k = warp; k < here; k += HN_SUPPRESS_WARPS) {
      const hn_corners other = room->near[base + k];
      const u32 over_a = hn_ballot(hn_overlaps(a, other, iou)), over_b = hn_ballot(hn_overlaps(b, other, iou));
      if (lane == 0) room->over[turn][k][0] = over_a, room->over[turn][k][1] = over_b;
    }
    HN_SYNC();
    /* The warp's first half brings together what the warps found of a, its second half of b. */
    u32 gone = room->hit[turn][lane / HN_SUPPRESS_WARPS][lane % HN_SUPPRESS_WARPS];
    HN_UNROLL
    for (int half = HN_SUPPRESS_WARPS / 2; half; half /= 2) gone |= hn_shfl_xor_u32(gone, half);
    const u32 aa = lane < here ? room->over[turn][lane][0] : 0, ab = lane < here ? room->over[turn][lane][1] : 0,
              bb = lane < far ? room->over[turn][lane + 32][1] : 0;
    u32 free_a = ~hn_shfl_u32(gone, 0) & hn_first_bits(here), free_b = ~hn_shfl_u32(gone, 16) & hn_first_bits(far);
    u32 stays_a = 0, stays_b = 0, now = chosen;
    for (; free_a && now < most; now++) {
      const int best = __ffs((int)free_a) - 1;
      stays_a |= 1u << best;
      free_a &= ~(hn_shfl_u32(aa, best) | 1u << best);
      free_b &= ~hn_shfl_u32(ab, best);
    }
    for (; free_b && now < most; now++) {
      const int best = __ffs((int)free_b) - 1;
      stays_b |= 1u << best;
      free_b &= ~(hn_shfl_u32(bb, best) | 1u << best);
    }
    if (warp == 0 && stays_a >> lane & 1) hn_keep(chosen + (u32)__popc(stays_a & before), base + lane, kept, room);
    if (warp == 1 && stays_b >> lane & 1)
      hn_keep(chosen + (u32)__popc(stays_a) + (u32)__popc(stays_b & before), base + lane + 32, kept, room);
    chosen = now;
    HN_SYNC();
  }
  return chosen;
}

/* Boxes of n that are kept, at most `most`, the best first; returns how many. */
HN_FN u32 hn_suppress(const HN_RIVALS *r, u32 n, u32 most, float iou, u32 *kept) {
  HN_SHARED hn_suppress_room room;
  u32 chosen = 0;
  u64 from = 0, to;
  do {
    to = ~(u64)0;
    u32 found = hn_collect(r, n, from, to, &room);
    if (found > HN_SUPPRESS_NEAR) {
      to = hn_rivals_that_fit(r, n, from, &room);
      found = hn_collect(r, n, from, to, &room);
    }
    hn_sort_rivals(room.key, found);
    for (u32 e = threadIdx.x; e < found; e += HN_SUPPRESS_THREADS) room.near[e] = HN_RIVAL_CORNERS(r, (u32)room.key[e]);
    HN_SYNC();
    chosen = hn_thin_out(r, found, chosen, most, iou, kept, &room);
    from = to + 1;
  } while (chosen < most && from);
  return chosen;
}

#endif
