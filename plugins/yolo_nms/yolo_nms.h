/* The arithmetic of NonMaxSuppression, in f32 and rounded after every operation, as reference and kernel
 * share it. */
#ifndef YOLO_NMS_H
#define YOLO_NMS_H

#include <math.h>
#include <stdbool.h>

typedef struct yolo_box {
  float y0, x0, y1, x1;
} yolo_box;

/* fminf and fmaxf, without a call: of a number and NaN the number. */
static inline float yolo_less(float a, float b) { return a < b || b != b ? a : b; }
static inline float yolo_more(float a, float b) { return a > b || b != b ? a : b; }

static inline yolo_box yolo_corners(float x, float y, float w, float h) {
  const float a = y - h / 2, b = y + h / 2, c = x - w / 2, d = x + w / 2;
  return (yolo_box){yolo_less(a, b), yolo_less(c, d), yolo_more(a, b), yolo_more(c, d)};
}

/* A product that compilers do not join with the sum behind it: thresholds must fall as they do in ONNX's
 * operator. */
static inline float yolo_product(float a, float b) {
  float p = a * b;
  __asm__("" : "+x"(p));
  return p;
}

static inline bool yolo_overlap(yolo_box a, yolo_box b, float iou) {
  const float high = yolo_less(a.y1, b.y1) - yolo_more(a.y0, b.y0),
              wide = yolo_less(a.x1, b.x1) - yolo_more(a.x0, b.x0);
  if (!(high > 0 && wide > 0)) return false;
  const float one = yolo_product(a.y1 - a.y0, a.x1 - a.x0), other = yolo_product(b.y1 - b.y0, b.x1 - b.x0);
  const float both = yolo_product(high, wide), either = one + other - both;
  return one > 0 && other > 0 && either > 0 && both / either > iou;
}

#endif
