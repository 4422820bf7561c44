/* YoloDecode on a GPU. A block has 32 cells of an anchor: a warp reads one number of all of them, side by side, and what
 * is made of it waits in shared memory until whole rows are written. LOAD, STORE, CELL and SIZE say the types of head,
 * boxes, cells and sizes; sums are f32. */
#include "hone.cuh"

typedef struct decode_args { /* the same as in yolo_decode_cuda.c */
  const void *head, *cells, *sizes;
  void *boxes;
  i64 cell[3], size[3];
  u32 anchors, wide, plane, across, pieces;
  float stride;
  int five;
} decode_args;

enum { CELLS = 32, WARPS = 8, DEEP = 96 };

HN_FN float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

HN_KERNEL(yolo_decode, decode_args, a) {
  HN_SHARED float tile[DEEP][CELLS + 1];
  const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
  const u32 of = blockIdx.x / a.pieces, first = (blockIdx.x - of * a.pieces) * CELLS, cell = first + lane,
            anchor = of % a.anchors, y = cell / a.across, x = cell - y * a.across, left = a.plane - first;
  const u32 n = left < CELLS ? left : CELLS;
  float own = 0; /* of the place or the size, which the first four warps compute */
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (lane < n && warp < 2) own = CELL(a.cells, anchor * a.cell[0] + y * a.cell[1] + x * a.cell[2] + warp);
  if (lane < n && warp / 2 == 1) own = SIZE(a.sizes, anchor * a.size[0] + y * a.size[1] + x * a.size[2] + warp - 2);
  for (u32 base = 0; base < a.wide; base += DEEP) {
    const u32 deep = a.wide - base < DEEP ? a.wide - base : DEEP;
    const i64 from = ((i64)of * a.wide + base) * a.plane + cell;
    float v[DEEP / WARPS];
    HN_UNROLL
    for (u32 i = 0; i < DEEP / WARPS; i++) {
      const u32 k = i * WARPS + warp;
      v[i] = k < deep && lane < n ? LOAD(a.head, from + (i64)k * a.plane) : 0;
    }
    HN_SYNC(); /* what was there is written */
    HN_UNROLL
    for (u32 i = 0; i < DEEP / WARPS; i++) {
      const u32 k = i * WARPS + warp;
      float r = sigmoid(v[i]);
      if (base + k < 2) {
        r = ((a.five ? 2 * r : r) + own) * a.stride;
      } else if (base + k < 4) {
        r = (a.five ? 4 * r * r : expf(v[i])) * own;
      }
      tile[k][lane] = r;
    }
    HN_SYNC();
    for (u32 row = warp; row < n; row += WARPS)
      for (u32 k = lane; k < deep; k += 32)
        STORE(a.boxes, ((i64)of * a.plane + first + row) * a.wide + base + k, tile[k][row]);
  }
}
