/* YoloNms on a GPU: yolo_clear, yolo_sweep (a warp a box), yolo_suppress and yolo_write (a block a class of an image).
 * LOAD says the type of the head; everything is f32 and rounded after every operation, as on the processor. */
#include "hone.cuh"

typedef unsigned long long yolo_key; /* the better the score the smaller, then by the box; ~0: taken */

typedef struct yolo_args { /* the same as in yolo_nms_cuda.c */
  const void *head;
  i64 *rows, *count;
  u32 *found, *chosen, *kept; /* [lines] candidates, [lines] kept ones, [lines][most] the kept ones */
  yolo_key *list;             /* [lines][boxes] */
  i64 images, boxes, wide, classes, most, filled;
  float least, iou;
} yolo_args;

enum { THREADS = 256, WARPS = THREADS / 32, NEAR = 1024 };

typedef struct yolo_box {
  float y0, x0, y1, x1;
} yolo_box;

HN_FN yolo_box box_of(const yolo_args *a, i64 at) {
  const float x = LOAD(a->head, at), y = LOAD(a->head, at + 1), w = __fmul_rn(LOAD(a->head, at + 2), 0.5f),
              h = __fmul_rn(LOAD(a->head, at + 3), 0.5f);
  const float y0 = __fadd_rn(y, -h), y1 = __fadd_rn(y, h), x0 = __fadd_rn(x, -w), x1 = __fadd_rn(x, w);
  yolo_box b;
  b.y0 = fminf(y0, y1), b.x0 = fminf(x0, x1), b.y1 = fmaxf(y0, y1), b.x1 = fmaxf(x0, x1);
  return b;
}

HN_FN float area_of(yolo_box b) { return __fmul_rn(b.y1 - b.y0, b.x1 - b.x0); }

HN_FN int overlap(yolo_box a, yolo_box b, float iou) {
  const float high = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0), wide = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0);
  if (!(high > 0 && wide > 0)) return 0;
  const float one = area_of(a), other = area_of(b), both = __fmul_rn(high, wide),
              either = __fadd_rn(__fadd_rn(one, other), -both);
  return one > 0 && other > 0 && either > 0 && both / either > iou;
}

HN_KERNEL(yolo_clear, yolo_args, a) {
  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i < a.images * a.classes) a.found[i] = 0;
  if (i < a.filled) a.rows[i] = -1;
}

HN_KERNEL(yolo_sweep, yolo_args, a) {
  const i64 box = (i64)blockIdx.x * WARPS + threadIdx.x / 32, image = box / a.boxes, at = box * a.wide;
  if (image >= a.images) return;
  const float object = LOAD(a.head, at + 4);
  for (i64 k = threadIdx.x % 32; k < a.classes; k += 32) {
    const float score = __fmul_rn(LOAD(a.head, at + 5 + k), object);
    if (!(score > a.least)) continue;
    const i64 line = image * a.classes + k;
    const u32 bits = hn_bits(__fadd_rn(score, 0.0f)), rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    a.list[line * a.boxes + hn_atomic_add_u32(a.found + line, 1)] =
        (yolo_key)~rising << 32 | (u32)(box - image * a.boxes);
  }
}

/* The least key of all threads. */
HN_FN yolo_key least_of(yolo_key key, yolo_key *shared) {
  HN_SYNC();
  shared[threadIdx.x] = key;
  for (u32 half = THREADS / 2; half; half /= 2) {
    HN_SYNC();
    if (threadIdx.x < half && shared[threadIdx.x + half] < shared[threadIdx.x])
      shared[threadIdx.x] = shared[threadIdx.x + half];
  }
  HN_SYNC();
  return shared[0];
}

/* More candidates than a block can hold: the best one that is left, again and again. */
HN_FN u32 suppress_many(const yolo_args *a, i64 line, u32 n, i64 image, yolo_key *shared) {
  yolo_key *list = a->list + line * a->boxes;
  u32 chosen = 0;
  yolo_box last;
  last.y0 = last.x0 = last.y1 = last.x1 = 0;
  while (chosen < a->most) {
    yolo_key least = ~0ull;
    for (u32 e = threadIdx.x; e < n; e += THREADS) {
      const yolo_key key = list[e];
      if (key == ~0ull) continue;
      if (chosen && (overlap(box_of(a, (image * a->boxes + (u32)key) * a->wide), last, a->iou) ||
                     (u32)key == a->kept[line * a->most + chosen - 1]))
        list[e] = ~0ull;
      else if (key < least)
        least = key;
    }
    least = least_of(least, shared);
    if (least == ~0ull) break;
    last = box_of(a, (image * a->boxes + (u32)least) * a->wide);
    if (threadIdx.x == 0) a->kept[line * a->most + chosen] = (u32)least;
    chosen++;
    HN_SYNC();
  }
  return chosen;
}

HN_KERNEL(yolo_suppress, yolo_args, a) {
  HN_SHARED yolo_key key[NEAR];
  HN_SHARED yolo_box box[NEAR];
  HN_SHARED u32 index[NEAR], is_taken[NEAR];
  const i64 line = blockIdx.x, image = line / a.classes;
  const u32 n = a.found[line], t = threadIdx.x;
  u32 chosen = 0;
  if (n > NEAR) {
    chosen = suppress_many(&a, line, n, image, key);
    if (t == 0) a.chosen[line] = chosen;
    return;
  }
  for (u32 e = t; e < n; e += THREADS) key[e] = a.list[line * a.boxes + e];
  HN_SYNC();
  for (u32 e = t; e < n; e += THREADS) {
    const yolo_key mine = key[e];
    u32 rank = 0;
    for (u32 i = 0; i < n; i++) rank += key[i] < mine;
    index[rank] = (u32)mine;
    box[rank] = box_of(&a, (image * a.boxes + (u32)mine) * a.wide);
    is_taken[rank] = 0;
  }
  HN_SYNC();
  for (u32 now = 0; now < n && chosen < a.most; now++) {
    if (is_taken[now]) continue;
    const yolo_box b = box[now];
    if (t == 0) a.kept[line * a.most + chosen] = index[now];
    chosen++;
    for (u32 e = now + 1 + t; e < n; e += THREADS)
      if (overlap(box[e], b, a.iou)) is_taken[e] = 1;
    HN_SYNC();
  }
  if (t == 0) a.chosen[line] = chosen;
}

HN_KERNEL(yolo_write, yolo_args, a) {
  HN_SHARED u32 part[THREADS];
  const i64 line = blockIdx.x, image = line / a.classes;
  const u32 t = threadIdx.x, n = a.chosen[line];
  u32 before = 0;
  for (i64 i = t; i < line; i += THREADS) before += a.chosen[i];
  part[t] = before;
  for (u32 half = THREADS / 2; half; half /= 2) {
    HN_SYNC();
    if (t < half) part[t] += part[t + half];
  }
  HN_SYNC();
  for (u32 e = t; e < n; e += THREADS) {
    i64 *to = a.rows + 3 * (i64)(part[0] + e);
    to[0] = image, to[1] = line - image * a.classes, to[2] = a.kept[line * a.most + e];
  }
  if (t == 0 && line == a.images * a.classes - 1) a.count[0] = (i64)part[0] + n;
}
