/* A detector's outputs as boxes of a picture. Inside of hone only. */
#ifndef HN_RUNTIME_POST_DECODE_H
#define HN_RUNTIME_POST_DECODE_H

#include "base/vec.h"

#include <hone/post.h>

/* Which output is what; filled by hn_decode_find from the outputs of a run. */
typedef struct hn_decoder {
  hone_boxes_options o;                          /* the form is no longer "auto" */
  int64_t rows;                                  /* samples of a run */
  uint32_t known;                                /* classes of the data; 0: any */
  int32_t boxes, scores, classes, picked, count; /* outputs; -1: none */
} hn_decoder;

typedef HN_VEC(hone_detection) hn_detections;

/* names: of the outputs, which tell scores from classes where shapes do not. */
hone_status hn_decode_find(const hone_boxes_options *o, const hone_tensor *const *out,
                           const char *const *names, uint32_t n, int64_t rows, uint32_t known,
                           hn_decoder *decoder, hone_error *error);
/* The boxes of one sample, in the pixels of its picture. `list` is emptied before. */
hone_status hn_decode_row(const hn_decoder *decoder, const hone_tensor *const *out, int64_t row,
                          const hone_picture_map *map, hn_detections *list, hone_error *error);

/* Drops boxes that overlap a better one of their class by more than `iou`, and those behind the first 100 of
 * a class. */
void hn_suppress(hn_detections *list, double iou);

#endif
