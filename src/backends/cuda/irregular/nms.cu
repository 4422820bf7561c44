/* NonMaxSuppression: a block a class of an image finds what is kept (suppress.cuh), and another writes it behind what the
 * classes before keep. Prefix: HN_CENTER, and those of order.cuh for f32.
 * p: images, classes, boxes, the most that a class keeps, whether scores are limited
 * Workspace: counted.cuh; how many each class keeps, then which */
#include "direct.cuh"
#include "corners.cuh"
#include "counted.cuh"
#include "order.cuh"

typedef struct hn_rivals { /* a class of an image */
  const hn_direct_args *a;
  i64 scores, boxes; /* where its elements begin */
  float least;
} hn_rivals;

HN_FN u32 hn_rival_key(const hn_rivals *r, u32 e) {
  const hn_direct_args *a = r->a;
  const float score = HN_IN(1, r->scores + e);
  return (a->p[4] ? score > r->least : score == score) ? ~HN_ORDER_KEY(score) : ~0u;
}

HN_FN hn_corners hn_rival_corners(const hn_rivals *r, u32 e) {
  const hn_direct_args *a = r->a;
  const i64 at = (r->boxes + e) * 4;
  const float v0 = HN_IN(0, at), v1 = HN_IN(0, at + 1), v2 = HN_IN(0, at + 2), v3 = HN_IN(0, at + 3);
  hn_corners c;
  float y0 = v0, x0 = v1, y1 = v2, x1 = v3;
  if (HN_CENTER) y0 = v1 - v3 / 2, y1 = v1 + v3 / 2, x0 = v0 - v2 / 2, x1 = v0 + v2 / 2;
  c.y0 = fminf(y0, y1), c.x0 = fminf(x0, x1), c.y1 = fmaxf(y0, y1), c.x1 = fmaxf(x0, x1);
  return c;
}

#define HN_RIVALS hn_rivals
#define HN_RIVAL_KEY hn_rival_key
#define HN_RIVAL_CORNERS hn_rival_corners
#include "suppress.cuh"

HN_FN u32 *hn_counts(const hn_direct_args *a) { return (u32 *)((char *)a->work + HN_COUNTED_BYTES); }
HN_FN u32 *hn_kept(const hn_direct_args *a, u32 line) { return hn_counts(a) + a->p[0] * a->p[1] + line * a->p[3]; }

HN_EACH_BLOCK_OF(hn_nms, HN_SUPPRESS_THREADS) {
  const u32 n = (u32)a->p[2];
  hn_rivals rivals;
  float iou = 0;
  i64 most = 0;
  rivals.a = a, rivals.scores = (i64)i * n, rivals.boxes = (i64)(i / (u32)a->p[1]) * n, rivals.least = 0;
#ifdef HN_I2
  most = HN_IN(2, 0);
  most = most < 0 ? 0 : most > a->p[3] ? a->p[3] : most;
#endif
#ifdef HN_I3
  iou = HN_IN(3, 0);
#endif
#ifdef HN_I4
  rivals.least = HN_IN(4, 0);
#endif
  const u32 chosen = hn_suppress(&rivals, n, (u32)most, iou, hn_kept(a, i));
  if (threadIdx.x == 0) hn_counts(a)[i] = chosen;
}

HN_EACH_BLOCK(hn_nms_write) {
  const u32 t = threadIdx.x, chosen = hn_counts(a)[i], lines = (u32)(a->p[0] * a->p[1]), image = i / (u32)a->p[1];
  HN_SHARED u32 part[256];
  u32 before = 0;
  for (u32 line = t; line < i; line += 256) before += hn_counts(a)[line];
  part[t] = before;
  for (u32 half = 128; half; half /= 2) {
    HN_SYNC();
    if (t < half) part[t] += part[t + half];
  }
  HN_SYNC();
  for (u32 e = t; e < chosen; e += 256) {
    const i64 to = (i64)(part[0] + e) * 3;
    HN_OUT(0, to, image);
    HN_OUT(0, to + 1, i - image * (u32)a->p[1]);
    HN_OUT(0, to + 2, hn_kept(a, i)[e]);
  }
  if (t == 0 && i == lines - 1) hn_count_out(a, 0, 0, part[0] + chosen);
}
