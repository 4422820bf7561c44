/* NonMaxSuppression: a block takes class after class of the images: candidates above the threshold are collected and
 * sorted, then each that is still free suppresses those behind it. Two small kernels count and write what remains.
 * Prefix: HN_CENTER, and those of order.cuh for f32.
 * p: images, classes, boxes, the most that a class keeps, entries of a block to sort, whether scores are limited
 * Workspace: counted.cuh; counts of the classes, what they keep, then keys and indices of the blocks, and the corners of
 * their candidates in order, four lists each */
#include "direct.cuh"
#include "counted.cuh"
#include "order.cuh"

/* Candidates of a class that are sorted in shared memory; of half as many the corners lie there, too. */
enum { HN_ENTRIES = 2048, HN_CORNERS = HN_ENTRIES / 2 };

HN_FN u32 *hn_counts(const hn_direct_args *a) { return (u32 *)((char *)a->work + HN_COUNTED_BYTES); }
HN_FN u32 *hn_kept(const hn_direct_args *a) { return hn_counts(a) + a->p[0] * a->p[1]; }

typedef struct hn_corners {
  float y0, x0, y1, x1;
} hn_corners;

HN_FN hn_corners hn_box(const hn_direct_args *a, i64 box) {
  const float v0 = HN_IN(0, box * 4), v1 = HN_IN(0, box * 4 + 1), v2 = HN_IN(0, box * 4 + 2), v3 = HN_IN(0, box * 4 + 3);
  hn_corners c;
  float y0 = v0, x0 = v1, y1 = v2, x1 = v3;
  if (HN_CENTER) y0 = v1 - v3 / 2, y1 = v1 + v3 / 2, x0 = v0 - v2 / 2, x1 = v0 + v2 / 2;
  c.y0 = fminf(y0, y1), c.x0 = fminf(x0, x1), c.y1 = fmaxf(y0, y1), c.x1 = fmaxf(x0, x1);
  return c;
}

/* Rounded after every operation, so that thresholds fall as on the host. */
HN_FN int hn_overlaps(hn_corners a, hn_corners b, float threshold) {
  const float height = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0), width = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0);
  if (!(height > 0 && width > 0)) return 0;
  const float area_a = __fmul_rn(a.y1 - a.y0, a.x1 - a.x0), area_b = __fmul_rn(b.y1 - b.y0, b.x1 - b.x0);
  const float both = __fmul_rn(height, width), either = __fadd_rn(__fadd_rn(area_a, area_b), -both);
  return area_a > 0 && area_b > 0 && either > 0 && both / either > threshold;
}

/* Candidate e's corners in four lists that lie `apart`. */
HN_FN hn_corners hn_candidate(const float *corner, i64 apart, u32 e) {
  hn_corners c;
  c.y0 = corner[e], c.x0 = corner[apart + e], c.y1 = corner[2 * apart + e], c.x1 = corner[3 * apart + e];
  return c;
}

HN_EACH_BLOCK(hn_nms) {
  HN_SHARED HN_KEY near_key[HN_ENTRIES];
  HN_SHARED u32 near_index[HN_ENTRIES];
  HN_SHARED float near_corner[4 * HN_CORNERS];
  HN_SHARED u32 candidates;
  const u32 n = (u32)a->p[2], t = threadIdx.x, lines = (u32)(a->p[0] * a->p[1]);
  HN_KEY *far_key = (HN_KEY *)(hn_kept(a) + (i64)lines * a->p[3]) + (i64)i * a->p[4];
  u32 *far_index = (u32 *)(hn_kept(a) + (i64)lines * a->p[3]) + (gridDim.x + (i64)i) * a->p[4];
  float *far_corner = (float *)(hn_kept(a) + (i64)lines * a->p[3]) + (2 * (i64)gridDim.x + 4 * (i64)i) * a->p[4];
  float iou = 0, least = 0;
  i64 most = 0;
#ifdef HN_I2
  most = HN_IN(2, 0);
  most = most < 0 ? 0 : most > a->p[3] ? a->p[3] : most;
#endif
#ifdef HN_I3
  iou = HN_IN(3, 0);
#endif
#ifdef HN_I4
  least = HN_IN(4, 0);
#endif
  for (u32 line = i; line < lines; line += gridDim.x) {
    const i64 scores = (i64)line * n, boxes = (i64)(line / (u32)a->p[1]) * n;
    u32 found, padded = 1, chosen = 0;
    HN_SYNC(); /* the class before is done */
    if (t == 0) candidates = 0;
    HN_SYNC();
    /* In any order: sorted, they have one. */
    for (u32 e = t; e < n; e += 256) {
      const float score = HN_IN(1, scores + e);
      if (!(a->p[5] ? score > least : score == score)) continue;
      const u32 to = hn_atomic_add_u32(&candidates, 1);
      if (to < HN_ENTRIES)
        near_key[to] = HN_ORDER_KEY(score), near_index[to] = e;
      else
        far_key[to] = HN_ORDER_KEY(score), far_index[to] = e;
    }
    HN_SYNC();
    found = candidates;
    HN_KEY *key = found <= HN_ENTRIES ? near_key : far_key;
    u32 *index = found <= HN_ENTRIES ? near_index : far_index;
    float *corner = found <= HN_CORNERS ? near_corner : far_corner;
    const i64 apart = found <= HN_CORNERS ? HN_CORNERS : a->p[4];
    for (u32 e = t; e < HN_ENTRIES && found > HN_ENTRIES; e += 256) key[e] = near_key[e], index[e] = near_index[e];
    while (padded < found) padded *= 2;
    for (u32 e = found + t; e < padded; e += 256) key[e] = 0, index[e] = ~0u;
    hn_block_sort(key, index, padded);
    /* From here a key says whether its box is still free. */
    for (u32 e = t; e < found; e += 256) {
      const hn_corners c = hn_box(a, boxes + index[e]);
      corner[e] = c.y0, corner[apart + e] = c.x0, corner[2 * apart + e] = c.y1, corner[3 * apart + e] = c.x1;
      key[e] = 1;
    }
    HN_SYNC();
    for (u32 now = 0; now < found && chosen < most; chosen++) {
      const hn_corners box = hn_candidate(corner, apart, now);
      if (t == 0) hn_kept(a)[(i64)line * a->p[3] + chosen] = index[now];
      for (u32 e = now + 1 + t; e < found; e += 256)
        if (key[e] && hn_overlaps(hn_candidate(corner, apart, e), box, iou)) key[e] = 0;
      HN_SYNC();
      /* Each thread finds the next one by itself: whoever is ahead clears keys behind it, where nobody looks any more. */
      do now++;
      while (now < found && !key[now]);
    }
    if (t == 0) hn_counts(a)[line] = chosen;
  }
}

/* One block: counts become first places, for one more than there are classes. */
HN_EACH_BLOCK(hn_nms_offsets) {
  HN_SHARED u32 shared[256];
  /* The places lie where keys were sorted: what is kept stays. */
  const u32 lines = (u32)(a->p[0] * a->p[1]), t = threadIdx.x;
  u32 *place = hn_kept(a) + (i64)lines * a->p[3];
  (void)i;
  for (u32 e = t; e < lines; e += 256) place[e] = hn_counts(a)[e];
  HN_SYNC();
  const u32 sum = hn_block_offsets(place, lines, shared);
  if (t == 0) hn_count_out(a, 0, 0, sum);
}

/* A thread a place that a class may fill. */
HN_EACH(hn_nms_write) {
  const u32 most = (u32)a->p[3], line = i / most, slot = i - line * most, classes = (u32)a->p[1];
  if (slot >= hn_counts(a)[line]) return;
  const u32 *place = hn_kept(a) + a->p[0] * a->p[1] * a->p[3];
  const i64 to = (i64)(place[line] + slot) * 3, image = line / classes;
  HN_OUT(0, to, image);
  HN_OUT(0, to + 1, line - image * classes);
  HN_OUT(0, to + 2, hn_kept(a)[i]);
}
