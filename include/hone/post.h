/* What becomes of a model's outputs: classes, texts and boxes out of host tensors.
 *
 * Plain functions without state, for any thread. Tensors are row-major, on the host and of numbers (strings
 * and sequences are HONE_ERROR_INPUT), and borrowed during the call; floats of any width are read. NULL where
 * something is needed is HONE_ERROR_USAGE; after an error nothing is owned by the caller. */
#ifndef HONE_POST_H
#define HONE_POST_H

#include <hone/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scores */

/* exp(x - max) / sum along `axis` (negative: from the end), sums in f64. out: [elements of in]. */
HONE_API hone_status hone_post_softmax(const hone_tensor *in, int32_t axis, float *out, hone_error *error);
/* 1 / (1 + exp(-x)). out: [elements of in]. */
HONE_API hone_status hone_post_sigmoid(const hone_tensor *in, float *out, hone_error *error);

typedef struct hone_ranked {
  uint32_t index;
  float score;
} hone_ranked;

/* The k best of scores[n] that are `least` or more, the best first, of equal ones the first; NaN never
 * counts. -INFINITY takes all. out: [k] or [n], whichever is less; *count of it are written. */
HONE_API hone_status hone_post_top_k(const float *scores, uint32_t n, uint32_t k, float least,
                                     hone_ranked *out, uint32_t *count, hone_error *error);
/* Where along `axis` (negative: from the end) the largest value is, the first of equal ones; NaN is less than
 * all. out, and score unless it is NULL: [elements of in / its length along axis], as if the axis were not
 * there. HONE_ERROR_INPUT for an axis of length 0. */
HONE_API hone_status hone_post_argmax(const hone_tensor *in, int32_t axis, int64_t *out, float *score,
                                      hone_error *error);

/* ---- text from a recogniser (connectionist temporal classification) */

typedef struct hone_ctc_options {
  uint32_t blank;            /* class that stands for nothing */
  const char *const *labels; /* text of the other classes in their order: with blank 0, labels[0] is that of
                              * class 1; NULL: no text is made */
  uint32_t n_labels;
  bool logits;     /* the values are no probabilities yet: softmax first */
  bool time_major; /* [T,N,C] instead of [N,T,C] */
} hone_ctc_options;

typedef struct hone_ctc {
  char *text;                /* the labels, one after the other; owned */
  uint32_t n;                /* classes that were read */
  uint32_t *classes, *steps; /* [n] which, and at which time each began; owned */
  float *scores;             /* [n] probability at that time; owned */
  double score;              /* their mean, 0 where nothing was read */
} hone_ctc;

/* Reads sample `row` of in, [N,T,C] or [T,C]: the most probable class of each time, repeats made one, blanks
 * dropped. This is what PP-OCR calls its score and text. HONE_ERROR_INPUT where a class has no label. Free
 * with hone_ctc_free. */
HONE_API hone_status hone_post_ctc(const hone_tensor *in, int64_t row, const hone_ctc_options *options,
                                   hone_ctc *out, hone_error *error);
HONE_API void hone_ctc_free(hone_ctc *text);

/* ---- boxes from a detector */

typedef struct hone_detection {
  double x0, y0, x1, y1; /* pixels of the picture, or in the unit of the true boxes */
  double score;
  uint32_t cls;
} hone_detection;

/* How a detector's outputs tell boxes; N: samples, M: boxes, C: classes. */
typedef enum hone_box_form {
  HONE_BOXES_AUTO = 0, /* by the outputs' shapes: one of the next three */
  HONE_BOXES_ROWS,     /* [N,M,6] or [M,6]: box, score, class; [M,7]: the sample's number first */
  HONE_BOXES_LISTS,  /* boxes [N,M,4], scores [N,M], classes [N,M], each also without N; how many, if given */
  HONE_BOXES_NMS,    /* boxes [N,M,4], scores [N,C,M] and NonMaxSuppression's indices [K,3] */
  HONE_BOXES_SCORES, /* boxes [N,M,4] and scores [N,M,C], to be suppressed; C one more than the data's
                        classes: the first is the background */
  HONE_BOXES_YOLOV3, /* [N,M,5+C]: box, objectness, classes, to be suppressed (also v5, v7) */
  HONE_BOXES_YOLOV8, /* [N,4+C,M]: box, classes, to be suppressed (also v9, v11) */
  HONE_BOX_FORMS
} hone_box_form;
HONE_API const char *hone_box_form_name(hone_box_form form); /* "auto", "xyxy-score-class"...; "": unknown */

/* The four numbers of a box. */
typedef enum hone_box_order {
  HONE_BOX_USUAL = 0, /* of the form: corners, YOLO's by centre */
  HONE_BOX_XYXY,
  HONE_BOX_YXYX,
  HONE_BOX_CENTRE /* x, y, width, height */
} hone_box_order;

typedef struct hone_boxes_options {
  hone_box_form form;
  hone_box_order order;
  bool relative;    /* parts of the input's width and height; else its pixels */
  double min_score; /* boxes below do not count; 0: 0.001 */
  double nms_iou;   /* boxes of a class that overlap a better one by more are dropped; 0: 0.65 */
  bool background;  /* HONE_BOXES_SCORES: the first class is the background, whatever the data says */
} hone_boxes_options;

typedef struct hone_boxes {
  hone_detection *box; /* [n] owned */
  uint32_t n;
} hone_boxes;

/* The boxes of sample `row` of a run of `rows` samples, from its outputs out[n] with names[n] (which tell
 * scores from classes where shapes do not). classes: boxes of others do not count; 0: all do. map: where the
 * picture's pixels are; NULL: boxes stay in the tensor's unit, negative ones excepted. HONE_ERROR_INPUT: the
 * outputs hold no boxes in that form. Sorted by class, then score, where they were suppressed; else as they
 * came. Free with hone_boxes_free. */
HONE_API hone_status hone_post_boxes(const hone_tensor *const *out, const char *const *names, uint32_t n,
                                     int64_t rows, int64_t row, uint32_t classes, const hone_picture_map *map,
                                     const hone_boxes_options *options, hone_boxes *boxes, hone_error *error);
HONE_API void hone_boxes_free(hone_boxes *boxes);
/* Sorts boxes[*n] by class and score and drops those that overlap a better one of their class by more than
 * `iou` (intersection over union), and those behind the first 100 of a class; *n are left. */
HONE_API hone_status hone_post_suppress(hone_detection *boxes, uint32_t *n, double iou, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
