/* An evaluation while it runs: batches in, predictions to a scorer. Inside of api only. */
#ifndef HN_API_EVAL_H
#define HN_API_EVAL_H

#include "runtime/post/decode.h"

#include <hone/eval.h>

typedef struct hn_evaluation {
  hone_context *context;
  const hone_plan *plan;
  const hone_dataset *set;
  const hone_eval_options *o;
  hone_scorer *scorer;    /* NULL before the first run */
  const hone_tensor **in; /* [plan inputs] */
  hone_tensor batch;      /* what the samples are put into */
  hone_tensor_desc one;   /* what one of them is */
  int64_t rows;           /* samples of a run */
  uint64_t *rank;         /* [rows] which sample of the set a row is */
  hone_picture_map *map;  /* [rows] where its picture is */
  uint64_t wanted, left_out;
  bool stopped;
  uint64_t begun; /* ns */
  /* Classes: */
  uint32_t output; /* that holds scores, or a class */
  uint32_t classes;
  float *scores; /* [classes] */
  /* Boxes: */
  const hone_tensor **out; /* [plan outputs] */
  const char **names;      /* of them */
  hn_decoder decoder;
  hn_detections found;
  hone_box *truth; /* of the row, in pixels */
  uint32_t truth_room;
} hn_evaluation;

/* What the first `rows` rows of a run say, to the scorer. eval_classes.c, eval_boxes.c */
hone_status hn_eval_classes(hn_evaluation *e, int64_t rows, hone_error *error);
hone_status hn_eval_boxes(hn_evaluation *e, int64_t rows, hone_error *error);

#endif
