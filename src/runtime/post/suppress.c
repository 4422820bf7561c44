/* Non-maximum suppression, class by class. */
#include "runtime/post/decode.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 100 /* of a class, as COCO counts */ };

static int by_class_and_score(const void *a, const void *b) {
  const hone_detection *x = a, *y = b;
  if (x->cls != y->cls) return x->cls < y->cls ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->x0 != y->x0) return x->x0 < y->x0 ? -1 : 1;
  return x->y0 < y->y0 ? -1 : x->y0 > y->y0;
}

static double overlap(const hone_detection *a, const hone_detection *b) {
  const double w = fmin(a->x1, b->x1) - fmax(a->x0, b->x0), h = fmin(a->y1, b->y1) - fmax(a->y0, b->y0);
  if (!(w > 0) || !(h > 0)) return 0;
  return w * h / ((a->x1 - a->x0) * (a->y1 - a->y0) + (b->x1 - b->x0) * (b->y1 - b->y0) - w * h);
}

void hn_suppress(hn_detections *list, double iou) {
  size_t kept = 0, begin = 0; /* of the class */
  if (list->len) qsort(list->ptr, list->len, sizeof *list->ptr, by_class_and_score);
  for (size_t i = 0; i < list->len; i++) {
    const hone_detection d = list->ptr[i];
    if (kept > begin && list->ptr[begin].cls != d.cls) begin = kept;
    bool good = kept - begin < MOST;
    for (size_t k = begin; good && k < kept; k++) good = overlap(&list->ptr[k], &d) <= iou;
    if (good) list->ptr[kept++] = d;
  }
  list->len = kept;
}
