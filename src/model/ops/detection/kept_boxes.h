/* Boxes that are kept so far, found by where they lie: of many boxes that are far apart, such as those of
 * many classes moved apart by an offset, each is compared with its neighbours alone. */
#ifndef HN_MODEL_OPS_DETECTION_KEPT_BOXES_H
#define HN_MODEL_OPS_DETECTION_KEPT_BOXES_H

#include "model/ops/common/bulk.h"

/* Corners in order (least y, least x, greatest y, greatest x) and the area between them. */
typedef struct hn_box {
  float corner[4], area;
} hn_box;

hn_box hn_box_of(const float corner[4]);

/* Strips across one axis. A box stands in each strip that it touches, so boxes that share a point share a
 * strip. */
typedef struct hn_kept_boxes {
  float *corner[4], *area;    /* of the boxes of strip s: [first[s] .. first[s] + n[s]) */
  int64_t *first, *n;         /* of each strip */
  int64_t n_strips, capacity; /* strips in use; boxes that there is room for */
  int32_t axis;               /* 0: y, 1: x */
  float from, width;          /* of the first strip; of each one */
} hn_kept_boxes;

/* Room for `most` boxes, in the call's scratch. */
hone_status hn_kept_boxes_init(hone_call *call, int64_t most, hn_kept_boxes *k, hone_error *error);
/* Empty again, with strips for any of the n <= most boxes whose corners are corner[4 * index[i]]: no wider
 * than they are on average. */
void hn_kept_boxes_start(hn_kept_boxes *k, const float *corner, const int64_t *index, int64_t n);
bool hn_kept_boxes_overlap(const hn_kept_boxes *k, const hn_box *b, float threshold);
void hn_kept_boxes_add(hn_kept_boxes *k, const hn_box *b);

#endif
