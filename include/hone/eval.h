/* How much of labelled data a model gets right: Top-1, Top-5, F1, mAP, and whether a change of it is real. */
#ifndef HONE_EVAL_H
#define HONE_EVAL_H

#include <hone/dataset.h>
#include <hone/post.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a class. Shares are 0 to 1, NaN where nothing was there to be counted. */
typedef struct hone_eval_class {
  const char *name;             /* the set's, borrowed; "": the set has no such class */
  uint64_t samples;             /* that are of it; boxes: to be found */
  uint64_t predicted, right;    /* said to be of it, and rightly so; boxes: at `confidence` and IoU 0.5 */
  double precision, recall, f1; /* right / predicted, right / samples, their harmonic mean */
  double ap, ap50, ap50_voc;    /* boxes: average precision, as in hone_eval_result */
  uint32_t taken_for;           /* the class that its samples were most often mistaken for */
  uint64_t mistakes;            /* how often; 0: never */
} hone_eval_class;

typedef enum hone_outcome {
  HONE_OUTCOME_NONE = 0, /* not measured */
  HONE_OUTCOME_WRONG,
  HONE_OUTCOME_RIGHT
} hone_outcome;

/* Free with hone_eval_free. */
typedef struct hone_eval_result {
  hone_truth truth;
  uint64_t samples;  /* measured */
  uint64_t left_out; /* could not be read */
  uint64_t wanted;
  bool stopped; /* before all of them */
  double seconds;
  uint32_t n_classes;
  hone_eval_class *classes;
  /* The mean of the classes' F1, of those that are in the data; and that of all decisions together, which for
   * one class a sample is Top-1. */
  double f1_macro, f1_micro;
  /* Classes: */
  uint64_t right, right5;
  double top1, top5;          /* top5: NaN below six classes */
  double top1_low, top1_high; /* 95 % interval of Top-1 (Wilson) */
  uint64_t n_outcomes;
  uint8_t *outcomes; /* [n_outcomes] hone_outcome of each sample of the set */
  /* Boxes. COCO's: 101 points of recall, at most 100 boxes of a class and picture; the mean over IoU 0.50,
   * 0.55... 0.95, at 0.50 and at 0.75. VOC's: the area under the curve at IoU 0.50. Means of the classes that
   * are in the data. */
  double map, map50, map75, map50_voc;
  double confidence;   /* of F1: the score from which on a box counts that makes f1_micro largest */
  uint64_t truths;     /* boxes to be found */
  uint64_t detections; /* found */
} hone_eval_result;

/* Frees what the result holds, not the result itself. */
HONE_API void hone_eval_free(hone_eval_result *result);

/* ---- keeping score of predictions, wherever they come from */

typedef struct hone_scorer hone_scorer;

/* For this many classes and samples. */
HONE_API hone_status hone_scorer_open(hone_truth truth, uint32_t classes, uint64_t samples, hone_scorer **out,
                                      hone_error *error);
HONE_API void hone_scorer_close(hone_scorer *scorer);
/* The scores of all classes for a sample. Of equal ones the first wins; NaN is less than all. */
HONE_API hone_status hone_scorer_add_class(hone_scorer *scorer, uint64_t sample, uint32_t truth,
                                           const float *scores, uint32_t n, hone_error *error);
/* A class and no scores: then there is no Top-5. */
HONE_API hone_status hone_scorer_add_choice(hone_scorer *scorer, uint64_t sample, uint32_t truth,
                                            uint32_t chosen, hone_error *error);
/* The boxes of a sample and those found in it; those of other classes than the scorer's count for nothing. */
HONE_API hone_status hone_scorer_add_boxes(hone_scorer *scorer, uint64_t sample, const hone_box *truth,
                                           uint32_t n_truth, const hone_detection *found, uint32_t n_found,
                                           hone_error *error);
/* What the scorer knows so far; the rest of *out is zeroed. */
HONE_API hone_status hone_scorer_finish(const hone_scorer *scorer, hone_eval_result *out, hone_error *error);

/* 95 % interval of a share, `right` of `n` (Wilson's score). */
HONE_API void hone_interval(uint64_t right, uint64_t n, double *low, double *high);

/* ---- running a model on a set */

typedef struct hone_eval_options {
  const hone_preprocess *preprocess; /* NULL: as zeroed */
  uint32_t first, every;             /* only the first-th sample and every `every`-th behind it; 0, 0: all */
  uint64_t max_samples;              /* evenly spread over these; 0: all */
  double max_seconds;                /* then what was measured until then is the answer; 0: none */
  uint32_t input;                    /* of the plan, that takes the samples */
  const hone_tensor *const *others;  /* [plan inputs] what all others are given; NULL where there is one */
  hone_boxes_options boxes;          /* of a detector */
  bool (*progress)(void *arg, uint64_t done, uint64_t total);               /* false: stop; NULL */
  void (*left_out)(void *arg, const char *sample, const hone_error *error); /* could not be read; NULL */
  void *arg;
} hone_eval_options;

/* Runs the context on the samples, as many at a time as the input's batch takes. HONE_ERROR_INPUT when no
 * sample can be read, or the outputs are not what the labels are about; HONE_ERROR_CANCELLED when it was
 * stopped before any was measured. */
HONE_API hone_status hone_eval_run(hone_context *context, const hone_dataset *set,
                                   const hone_eval_options *options, hone_eval_result *out,
                                   hone_error *error);

/* Two models on the same samples. */
typedef struct hone_eval_change {
  uint64_t samples;        /* that both were measured on */
  uint64_t only_a, only_b; /* that only the one had right */
  double top1_a, top1_b;   /* on these */
  double p;  /* McNemar's exact test, both sides: chance of so uneven a split where neither is better */
  bool real; /* p < 0.05 */
} hone_eval_change;

/* HONE_ERROR_USAGE when they are not of one set with classes. */
HONE_API hone_status hone_eval_compare(const hone_eval_result *a, const hone_eval_result *b,
                                       hone_eval_change *out, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
