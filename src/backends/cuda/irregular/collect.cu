/* NonZero and Compress: what is wanted is counted in blocks of 2048, the counts are summed, and every block writes from
 * its place on. How many there are comes out at the beginning of the workspace (device/counted.cuh). Behind it: a count a
 * block, for Compress the place of every kept element of the axis. Prefix: HN_MASK, the input that says what is wanted.
 * p: elements of the mask, blocks; NonZero: rank, from 8 dimensions; Compress: outer, length and inner, from 4 */
#include "direct.cuh"
#include "counted.cuh"
#include "rank.cuh"

enum { HN_EACH_BLOCKS = 2048 };

HN_FN u32 *hn_counts(const hn_direct_args *a) { return (u32 *)((char *)a->work + HN_COUNTED_BYTES); }
HN_FN int hn_wanted(const hn_direct_args *a, i64 at) { return at < a->p[0] && HN_IN(HN_MASK, at) != 0; }

HN_EACH_BLOCK(hn_count) {
  HN_SHARED u32 shared[8];
  u32 total, sum = 0;
  for (u32 e = threadIdx.x; e < HN_EACH_BLOCKS; e += 256) {
    hn_block_rank(hn_wanted(a, (i64)i * HN_EACH_BLOCKS + e), shared, &total);
    sum += total;
  }
  if (threadIdx.x == 0) hn_counts(a)[i] = sum;
}

/* One block: counts become first places. */
HN_EACH_BLOCK(hn_offsets) {
  HN_SHARED u32 shared[8];
  u32 *count = hn_counts(a);
  u32 sum = hn_block_offsets(count, (u32)a->p[1], shared);
  (void)i;
#ifdef HN_COMPRESSED
  if (threadIdx.x == 0) hn_count_out(a, 0, (int)a->p[7], sum);
#else
  if (threadIdx.x == 0) hn_count_out(a, 0, 1, sum);
#endif
}

HN_EACH_BLOCK(hn_places) {
  HN_SHARED u32 shared[8];
  u32 total, next = hn_counts(a)[i];
  for (u32 e = threadIdx.x; e < HN_EACH_BLOCKS; e += 256) {
    const i64 at = (i64)i * HN_EACH_BLOCKS + e;
    const int wanted = hn_wanted(a, at);
    const u32 place = next + hn_block_rank(wanted, shared, &total);
    next += total;
    if (!wanted) continue;
#ifdef HN_COMPRESSED
    (hn_counts(a) + a->p[1])[place] = (u32)at;
#else
    i64 rest = at;
    const i64 n = hn_counted(a, 0, 1);
    for (int d = (int)a->p[2] - 1; d >= 0; d--) {
      const i64 more = rest / a->p[8 + d];
      HN_OUT(0, d * n + place, rest - more * a->p[8 + d]);
      rest = more;
    }
#endif
  }
}

#ifdef HN_COMPRESSED
/* A thread an element that may come out. */
HN_EACH(hn_compress) {
  const i64 kept = hn_counted(a, 0, (int)a->p[7]), line = i / a->p[6], outer = kept ? line / kept : a->p[4];
  if (outer >= a->p[4]) return;
  const u32 from = (hn_counts(a) + a->p[1])[line - outer * kept];
  HN_OUT(0, i, HN_IN(0, (outer * a->p[5] + from) * a->p[6] + (i - line * a->p[6])));
}
#endif
