/* YoloNms on a GPU: yolo_sweep (a block 32 boxes) makes keys of the scores, a line a class of an image; yolo_suppress and
 * yolo_write (a block a line) find what is kept and write it. LOAD says the type of the head; everything is f32 and
 * rounded after every operation, as on the processor. */
#include "hone.cuh"
#include "corners.cuh"

typedef struct yolo_args { /* the same as in yolo_nms_cuda.c */
  const void *head;
  i64 *rows, *count;
  u32 *chosen, *kept, *key; /* [lines] kept ones, [lines][most] which; [lines][boxes] the better the smaller, ~0: none */
  i64 images, boxes, wide, classes, most, filled;
  float least, iou;
} yolo_args;

enum { THREADS = 256, WARPS = THREADS / 32, BOXES = 32, DEEP = 96 };

typedef struct yolo_line { /* a class of an image */
  const yolo_args *a;
  const u32 *key;
  i64 box; /* the image's first */
} yolo_line;

HN_FN hn_corners corners_of(const yolo_line *l, u32 e) {
  const yolo_args *a = l->a;
  const i64 at = (l->box + e) * a->wide;
  const float x = LOAD(a->head, at), y = LOAD(a->head, at + 1), w = __fmul_rn(LOAD(a->head, at + 2), 0.5f),
              h = __fmul_rn(LOAD(a->head, at + 3), 0.5f);
  const float y0 = __fadd_rn(y, -h), y1 = __fadd_rn(y, h), x0 = __fadd_rn(x, -w), x1 = __fadd_rn(x, w);
  hn_corners c;
  c.y0 = fminf(y0, y1), c.x0 = fminf(x0, x1), c.y1 = fmaxf(y0, y1), c.x1 = fmaxf(x0, x1);
  return c;
}

#define HN_RIVALS yolo_line
#define HN_RIVAL_KEY(l, e) (l)->key[e]
#define HN_RIVAL_CORNERS corners_of
#include "suppress.cuh"

/* Rows come from the head as they lie, and leave as columns. */
HN_KERNEL(yolo_sweep, yolo_args, a) {
  HN_SHARED float tile[BOXES][DEEP + 1];
  HN_SHARED float object[BOXES];
  const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
  const u32 pieces = (u32)((a.boxes + BOXES - 1) / BOXES), image = blockIdx.x / pieces,
            first = (blockIdx.x - image * pieces) * BOXES;
  const i64 left = a.boxes - first;
  const u32 n = left < BOXES ? (u32)left : BOXES;
  const i64 row = (image * a.boxes + first) * a.wide;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (t < n) object[t] = LOAD(a.head, row + t * a.wide + 4);
  for (i64 base = 0; base < a.classes; base += DEEP) {
    const u32 deep = a.classes - base < DEEP ? (u32)(a.classes - base) : DEEP;
    float v[BOXES / WARPS][DEEP / 32];
    HN_UNROLL
    for (u32 i = 0; i < BOXES / WARPS; i++)
      HN_UNROLL
      for (u32 k = 0; k < DEEP / 32; k++) {
        const u32 box = i * WARPS + warp, column = k * 32 + lane;
        v[i][k] = box < n && column < deep ? LOAD(a.head, row + box * a.wide + 5 + base + column) : 0;
      }
    HN_SYNC(); /* what was there is written */
    HN_UNROLL
    for (u32 i = 0; i < BOXES / WARPS; i++)
      HN_UNROLL
      for (u32 k = 0; k < DEEP / 32; k++) tile[i * WARPS + warp][k * 32 + lane] = v[i][k];
    HN_SYNC();
    for (u32 k = warp; k < deep && lane < n; k += WARPS) {
      const float score = __fmul_rn(tile[lane][k], object[lane]);
      const u32 bits = hn_bits(__fadd_rn(score, 0.0f)), rising = bits >> 31 ? ~bits : bits | 0x80000000u;
      a.key[(image * a.classes + base + k) * a.boxes + first + lane] = score > a.least ? ~rising : ~0u;
    }
  }
}

HN_KERNEL_BOUNDS(yolo_suppress, yolo_args, a, HN_SUPPRESS_THREADS, 1) {
  const i64 line = blockIdx.x;
  yolo_line rivals;
  HN_GRID_GO();
  HN_GRID_WAIT();
  rivals.a = &a, rivals.key = a.key + line * a.boxes, rivals.box = line / a.classes * a.boxes;
  const u32 chosen = hn_suppress(&rivals, (u32)a.boxes, (u32)a.most, a.iou, a.kept + line * a.most);
  if (threadIdx.x == 0) a.chosen[line] = chosen;
}

HN_KERNEL(yolo_write, yolo_args, a) {
  HN_SHARED u32 part[2][THREADS];
  const i64 lines = a.images * a.classes, line = blockIdx.x, image = a.classes ? line / a.classes : 0;
  const u32 t = threadIdx.x;
  u32 before = 0, all = 0;
  HN_GRID_GO();
  HN_GRID_WAIT();
  const u32 n = line < lines ? a.chosen[line] : 0;
  for (i64 i = t; i < lines; i += THREADS) {
    const u32 here = a.chosen[i];
    all += here;
    if (i < line) before += here;
  }
  part[0][t] = before, part[1][t] = all;
  for (u32 half = THREADS / 2; half; half /= 2) {
    HN_SYNC();
    if (t < half) part[0][t] += part[0][t + half], part[1][t] += part[1][t + half];
  }
  HN_SYNC();
  for (u32 e = t; e < n; e += THREADS) {
    i64 *to = a.rows + 3 * (i64)(part[0][0] + e);
    to[0] = image, to[1] = line - image * a.classes, to[2] = a.kept[line * a.most + e];
  }
  for (i64 i = 3 * (i64)part[1][0] + line * THREADS + t; i < a.filled; i += (i64)gridDim.x * THREADS) a.rows[i] = -1;
  if (t == 0 && line == 0) a.count[0] = part[1][0];
}
