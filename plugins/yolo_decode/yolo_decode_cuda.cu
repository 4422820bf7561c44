/* YoloDecode on a GPU. A block has 32 cells of an anchor: a warp reads one number of all of them, side by side, and what
 * is made of it waits in shared memory until whole rows are written. LOAD, STORE, CELL and SIZE say the types of head,
 * boxes, cells and sizes; sums are f32. */
#include "hone.cuh"

typedef struct decode_args { /* the same as in yolo_decode_cuda.c */
  const void *head, *cells, *sizes;
  void *boxes;
  i64 anchors, wide, plane, across, pieces, cell[3], size[3];
  float stride;
  int five;
} decode_args;

enum { CELLS = 32, WARPS = 8, DEEP = 96 };

HN_FN float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

HN_KERNEL(yolo_decode, decode_args, a) {
  HN_SHARED float tile[DEEP][CELLS + 1];
  const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
  const i64 of = blockIdx.x / a.pieces, first = blockIdx.x % a.pieces * CELLS, cell = first + lane,
            anchor = of % a.anchors, y = cell / a.across, x = cell % a.across;
  const i64 left = a.plane - first;
  const u32 n = left < CELLS ? (u32)left : CELLS;
  for (i64 base = 0; base < a.wide; base += DEEP) {
    const u32 deep = a.wide - base < DEEP ? (u32)(a.wide - base) : DEEP;
    float v[DEEP / WARPS];
    HN_UNROLL
    for (u32 i = 0; i < DEEP / WARPS; i++) {
      const u32 k = i * WARPS + warp;
      v[i] = k < deep && lane < n ? LOAD(a.head, (of * a.wide + base + k) * a.plane + cell) : 0;
    }
    HN_SYNC(); /* what was there is written */
    HN_UNROLL
    for (u32 i = 0; i < DEEP / WARPS; i++) {
      const u32 k = i * WARPS + warp;
      if (k >= deep || lane >= n) continue;
      const i64 part = base + k;
      float r = sigmoid(v[i]);
      if (part < 2) {
        const float at = CELL(a.cells, anchor * a.cell[0] + y * a.cell[1] + x * a.cell[2] + part);
        r = ((a.five ? 2 * r : r) + at) * a.stride;
      } else if (part < 4) {
        const float size = SIZE(a.sizes, anchor * a.size[0] + y * a.size[1] + x * a.size[2] + part - 2);
        r = (a.five ? 4 * r * r : expf(v[i])) * size;
      }
      tile[k][lane] = r;
    }
    HN_SYNC();
    for (u32 e = t; e < n * deep; e += 32 * WARPS) {
      const u32 row = e / deep, k = e - row * deep;
      STORE(a.boxes, (of * a.plane + first + row) * a.wide + base + k, tile[k][row]);
    }
  }
}
