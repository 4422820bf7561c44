/* What a scorer keeps. Inside of improve/accuracy only. */
#ifndef HN_IMPROVE_ACCURACY_SCORER_H
#define HN_IMPROVE_ACCURACY_SCORER_H

#include "base/error.h"
#include "base/vec.h"

#include <hone/eval.h>

/* A sample's class and what it was taken for. */
typedef struct hn_decision {
  uint32_t truth, chosen;
} hn_decision;

#define HN_SCORER_IOUS 10 /* 0.50, 0.55... 0.95 */

/* A box that was found: bit k of `right` and `ignored` (it lies in a crowd) is at IoU k. */
typedef struct hn_found {
  double score;
  uint64_t order; /* of equal scores the first comes first */
  uint32_t cls;
  uint16_t right, ignored;
} hn_found;

struct hone_scorer {
  hone_truth truth;
  uint32_t n_classes;
  uint64_t n_samples;
  HN_VEC(hn_decision) decisions;
  uint64_t right, right5;
  bool choices;      /* somebody gave a class without scores */
  uint8_t *outcomes; /* [n_samples] */
  HN_VEC(hn_found) found;
  uint64_t *truths; /* [n_classes] boxes to be found */
  uint64_t boxed;   /* samples of which boxes were given */
};

/* out->classes are there, and their samples, predicted and right counted: shares of each, and F1 of all. */
void hn_scorer_shares(hone_eval_result *out);
/* classes.c */
hone_status hn_scorer_finish_classes(const hone_scorer *scorer, hone_eval_result *out, hone_error *error);
/* average_precision.c */
hone_status hn_scorer_finish_boxes(const hone_scorer *scorer, hone_eval_result *out, hone_error *error);

#endif
