/* The arithmetic of NonMaxSuppression, in f32 and rounded after every operation, as reference and kernel
 * share it. */
#ifndef YOLO_NMS_H
#define YOLO_NMS_H

#include <hone/plugin.h>
#include <math.h>
#include <stdbool.h>

typedef struct yolo_box {
  float y0, x0, y1, x1;
} yolo_box;

/* fminf and fmaxf, without a call: of a number and NaN the number. */
static inline float yolo_less(float a, float b) { return a < b || b != b ? a : b; }
static inline float yolo_more(float a, float b) { return a > b || b != b ? a : b; }

/* A product that compilers do not join with the sum behind it: thresholds must fall as they do in ONNX's
 * operator. */
static inline float yolo_product(float a, float b) {
  float p = a * b;
  __asm__("" : "+x"(p));
  return p;
}

static inline yolo_box yolo_corners(float x, float y, float w, float h) {
  const float high = yolo_product(h, 0.5f), wide = yolo_product(w, 0.5f); /* denormals lose a bit here */
  const float a = y - high, b = y + high, c = x - wide, d = x + wide;
  return (yolo_box){yolo_less(a, b), yolo_less(c, d), yolo_more(a, b), yolo_more(c, d)};
}

/* A box overlaps nothing unless this is above 0. */
static inline float yolo_area(yolo_box b) { return yolo_product(b.y1 - b.y0, b.x1 - b.x0); }

static inline bool yolo_overlap(yolo_box a, yolo_box b, float iou) {
  const float high = yolo_less(a.y1, b.y1) - yolo_more(a.y0, b.y0),
              wide = yolo_less(a.x1, b.x1) - yolo_more(a.x0, b.x0);
  if (!(high > 0 && wide > 0)) return false;
  const float one = yolo_area(a), other = yolo_area(b);
  const float both = yolo_product(high, wide), either = one + other - both;
  return one > 0 && other > 0 && either > 0 && both / either > iou;
}

/* The processor's workspace: where its parts begin, in bytes, and how the boxes of an image are cut. */
typedef struct yolo_nms_room {
  int64_t most, pieces, piece, kept_each;
  size_t list, found, corner, kept, row, bytes;
} yolo_nms_room;

enum { YOLO_GROUP = 4, YOLO_LANES = 16 }; /* rows that are swept together; lanes of the widest vectors */

static inline size_t yolo_part(size_t *end, int64_t count, size_t size) {
  const size_t begin = *end;
  *end += ((size_t)count * size + 63) / 64 * 64;
  return begin;
}

static inline int64_t yolo_most(int64_t most, int64_t boxes) {
  return most < 0 ? 0 : most < boxes ? most : boxes;
}

static inline yolo_nms_room yolo_nms_room_of(const hone_tensor_desc *x, int64_t most, uint32_t threads) {
  const int64_t boxes = x->dim[1], classes = x->dim[2] - 5, workers = threads ? threads : 1;
  yolo_nms_room r = {.most = yolo_most(most, boxes)};
  r.piece = workers > 1 ? boxes / (4 * workers) + 1 : boxes ? boxes : 1;
  r.pieces = (boxes + r.piece - 1) / r.piece;
  r.kept_each = (r.most + YOLO_LANES) / YOLO_LANES * YOLO_LANES;
  r.list = yolo_part(&r.bytes, classes * boxes, 8);
  r.found = yolo_part(&r.bytes, (r.pieces + 1) * classes, 4);
  r.corner = yolo_part(&r.bytes, boxes, sizeof(yolo_box));
  r.kept = yolo_part(&r.bytes, workers * 5 * r.kept_each, 4);
  r.row = yolo_part(&r.bytes, workers * YOLO_GROUP * x->dim[2], 4);
  return r;
}

/* The GPU's. A line is a class of an image. */
typedef struct yolo_nms_device_room {
  size_t chosen, kept, key, bytes;
} yolo_nms_device_room;

static inline yolo_nms_device_room yolo_nms_device_room_of(const hone_tensor_desc *x, int64_t most) {
  const int64_t lines = x->dim[0] * (x->dim[2] - 5);
  yolo_nms_device_room r = {0};
  r.chosen = yolo_part(&r.bytes, lines, 4);
  r.kept = yolo_part(&r.bytes, lines * yolo_most(most, x->dim[1]), 4);
  r.key = yolo_part(&r.bytes, lines * x->dim[1], 4);
  return r;
}

#endif
