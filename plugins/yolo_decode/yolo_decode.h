/* What reference, kernels and launch know of a step: sizes, and where the constants of a cell are. */
#ifndef YOLO_DECODE_H
#define YOLO_DECODE_H

#include <hone/plugin.h>
#include <stdbool.h>

enum { YOLO_HEAD, YOLO_CELLS, YOLO_SIZES, YOLO_V5 = 5 };

/* Dimensions; steps of anchor, line and column in the elements of cells and sizes, 0 where one serves all. */
typedef struct yolo_sizes {
  int64_t images, anchors, wide, high, across; /* wide: numbers of a box */
  int64_t cell[3], size[3];
} yolo_sizes;

static inline void yolo_steps_of(const int64_t *dim, int64_t step[3]) {
  int64_t all = 2;
  for (int i = 3; i > 0; i--) {
    step[i - 1] = dim[i] == 1 ? 0 : all;
    all *= dim[i];
  }
}

static inline yolo_sizes yolo_sizes_of(const int64_t *head, const int64_t *cells, const int64_t *sizes) {
  yolo_sizes z = {.images = head[0], .anchors = sizes[1], .high = head[2], .across = head[3]};
  z.wide = z.anchors ? head[1] / z.anchors : 0;
  yolo_steps_of(cells, z.cell);
  yolo_steps_of(sizes, z.size);
  return z;
}

#endif
