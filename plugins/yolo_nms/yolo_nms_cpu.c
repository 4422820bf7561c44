/* YoloNms on the processor: one pass over the head collects the candidates of all classes, most of which have
 * few. */
#include "yolo_nms_op.h"

#include "../yolo_nms.h"
#include <stdlib.h>

typedef struct candidate {
  float score;
  uint32_t box;
} candidate;

static int better(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return x->score != y->score ? (x->score > y->score ? -1 : 1) : x->box < y->box ? -1 : x->box > y->box;
}

/* Is any lane set? */
static inline bool any_of(hone_vi mask) {
  hone_v4i all, part;
  memcpy(&all, &mask, sizeof all);
  for (int i = 4; i < HONE_LANES; i += 4) {
    memcpy(&part, (const char *)&mask + 4 * i, sizeof part);
    all |= part;
  }
  return (all[0] | all[1] | all[2] | all[3]) != 0;
}

/* Appends box i to the classes in which it is above the threshold. Most boxes are in none: one look says so.
 */
static void collect(const float *row, uint32_t i, int64_t classes, float least, candidate *list, uint64_t *n,
                    int64_t boxes) {
  const float object = row[4], *score = row + 5;
  hone_vi above = {0};
  int64_t k = 0;
  for (; k + HONE_LANES <= classes; k += HONE_LANES)
    above |= hone_load(score + k, HONE_LANES) * object > least;
  bool some = any_of(above);
  for (; k < classes; k++) some |= score[k] * object > least;
  for (k = 0; some && k < classes; k++) {
    const float s = score[k] * object;
    if (s > least) list[k * boxes + (int64_t)n[k]++] = (candidate){s, i};
  }
}

static yolo_box box_of(const void *head, bool half, int64_t at) {
  const uint16_t *h = (const uint16_t *)head + at;
  const float *f = (const float *)head + at;
  return half ? yolo_corners(hone_from_f16(h[0]), hone_from_f16(h[1]), hone_from_f16(h[2]),
                             hone_from_f16(h[3]))
              : yolo_corners(f[0], f[1], f[2], f[3]);
}

hone_status HONE_KERNEL(yolo_nms)(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error) {
  const hone_tensor_desc *x = &run->step->input[0].desc;
  const int64_t boxes = x->dim[1], wide = x->dim[2], classes = wide - 5,
                room = hone_desc_count(&run->step->output[0].desc);
  const int64_t most = attrs->most < 0 ? 0 : attrs->most < boxes ? attrs->most : boxes;
  const bool half = x->dtype == HONE_DTYPE_F16;
  candidate *list = run->workspace;
  uint64_t *n = (uint64_t *)(list + classes * boxes);
  yolo_box *kept = (yolo_box *)(n + classes);
  float *row = (float *)(kept + boxes);
  int64_t *to = run->out[0], found = 0;
  (void)error;
  for (int64_t b = 0; b < x->dim[0] && most; b++) {
    memset(n, 0, (size_t)classes * sizeof *n);
    for (int64_t i = 0; i < boxes; i++) {
      const int64_t at = (b * boxes + i) * wide;
      if (half)
        for (int64_t k = 4; k < wide; k++) row[k] = hone_from_f16(((const uint16_t *)run->in[0])[at + k]);
      collect(half ? row : (const float *)run->in[0] + at, (uint32_t)i, classes, attrs->score, list, n,
              boxes);
    }
    for (int64_t k = 0; k < classes; k++) {
      candidate *c = list + k * boxes;
      int64_t chosen = 0;
      qsort(c, (size_t)n[k], sizeof *c, better);
      for (uint64_t i = 0; i < n[k] && chosen < most; i++) {
        const yolo_box box = box_of(run->in[0], half, (b * boxes + c[i].box) * wide);
        bool free_place = true;
        for (int64_t j = 0; free_place && j < chosen; j++)
          free_place = !yolo_overlap(box, kept[j], attrs->iou);
        if (!free_place) continue;
        kept[chosen++] = box;
        to[3 * found] = b, to[3 * found + 1] = k, to[3 * found + 2] = c[i].box;
        found++;
      }
    }
  }
  for (int64_t i = 3 * found; i < room; i++) to[i] = -1;
  *(int64_t *)run->out[1] = found;
  return HONE_OK;
}
