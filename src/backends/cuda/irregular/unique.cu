/* Unique: one block sorts the items (elements, or slices along an axis), marks the first of equals and gives the groups
 * their places. Prefix: HN_SORTED, and those of order.cuh.
 * p: items, their elements outside and inside of the axis, entries to sort, the axis
 * Workspace: counted.cuh; u32 each: items in order, group of each place of the order, first place of a group, place of a
 * group in the output, number of each item's place */
#include "direct.cuh"
#include "counted.cuh"
#include "order.cuh"

HN_FN HN_KEY hn_key_of(const hn_direct_args *a, u32 item, i64 k) {
  const i64 outer = k / a->p[2];
  const HN_PASTE(hn_value_, HN_I0) x = HN_IN(0, (outer * a->p[0] + item) * a->p[2] + (k - outer * a->p[2]));
  return HN_ORDER_KEY(x);
}

/* < 0, 0 or > 0: item x comes before, is equal to or comes behind y. */
HN_FN int hn_compare(const hn_direct_args *a, u32 x, u32 y) {
  for (i64 k = 0; k < a->p[1] * a->p[2]; k++) {
    const HN_KEY p = hn_key_of(a, x, k), q = hn_key_of(a, y, k);
    if (p != q) return p < q ? -1 : 1;
  }
  return 0;
}

/* Does x come before y? Entries that fill up (~0) come last, of equals the first item comes first. */
HN_FN int hn_earlier(const hn_direct_args *a, u32 x, u32 y) {
  if (x == ~0u || y == ~0u) return x < y;
  const int c = hn_compare(a, x, y);
  return c ? c < 0 : x < y;
}

HN_EACH_BLOCK(hn_unique) {
  HN_SHARED u32 shared[8];
  const u32 n = (u32)a->p[0], padded = (u32)a->p[3], t = threadIdx.x;
  u32 *order = (u32 *)((char *)a->work + HN_COUNTED_BYTES), *group = order + padded, *start = group + padded;
  u32 *place = start + padded + 1, *begins = place + padded, groups = 0, total;
  (void)i;
  for (u32 e = t; e < padded; e += 256) order[e] = e < n ? e : ~0u;
  HN_SYNC();
  for (u32 size = 2; size <= padded; size *= 2)
    for (u32 step = size / 2; step; step /= 2) {
      for (u32 e = t; e < padded / 2; e += 256) {
        const u32 low = 2 * e - (e & (step - 1)), x = order[low], y = order[low + step];
        if (hn_earlier(a, y, x) == ((low & size) == 0)) order[low] = y, order[low + step] = x;
      }
      HN_SYNC();
    }
  for (u32 base = 0; base < n; base += 256) {
    const u32 e = base + t;
    const int first = e < n && (e == 0 || hn_compare(a, order[e - 1], order[e]) != 0);
    const u32 g = groups + hn_block_rank(first, shared, &total) + (first != 0) - 1;
    groups += total;
    if (e < n) group[e] = g;
    if (first) start[g] = e;
    if (e < n) begins[order[e]] = first; /* of items: whether it is the first of its kind */
  }
  if (t == 0) start[groups] = n;
  HN_SYNC();
  /* Places in the output: the groups' own order, or that of their first items. */
  if (HN_SORTED) {
    for (u32 g = t; g < groups; g += 256) place[g] = g;
  } else {
    hn_block_offsets(begins, n, shared);
    HN_SYNC();
    for (u32 g = t; g < groups; g += 256) place[g] = begins[order[start[g]]];
  }
  HN_SYNC();
  for (u32 g = t; g < groups; g += 256) {
#ifdef HN_O1
    HN_OUT(1, place[g], order[start[g]]);
#endif
#ifdef HN_O3
    HN_OUT(3, place[g], start[g + 1] - start[g]);
#endif
  }
#ifdef HN_O2
  for (u32 e = t; e < n; e += 256) HN_OUT(2, order[e], place[group[e]]);
#endif
#ifdef HN_O0
  for (i64 e = t; e < groups * a->p[1] * a->p[2]; e += 256) {
    const i64 line = e / a->p[2], outer = line / groups, g = line - outer * groups;
    HN_OUT(0, (outer * groups + place[g]) * a->p[2] + (e - line * a->p[2]),
           HN_IN(0, (outer * a->p[0] + order[start[g]]) * a->p[2] + (e - line * a->p[2])));
  }
#endif
  if (t == 0) {
    hn_count_out(a, 0, (int)a->p[4], groups);
    hn_count_out(a, 1, 0, groups);
    hn_count_out(a, 3, 0, groups);
  }
}
